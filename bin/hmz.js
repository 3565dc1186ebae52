#!/usr/bin/env node
// The launcher. Plain JavaScript with no import at its top, so that a Node too old for hmz can still say so.
(function () {
  var parts = process.version.slice(1).split(".");
  var major = Number(parts[0]);
  var minor = Number(parts[1]);
  if (major < 22 || (major === 22 && minor < 18)) {
    process.stderr.write(
      "hmz needs Node 22.18 or newer; this is " +
        process.version +
        " (" +
        process.execPath +
        "). Install a newer one from https://nodejs.org, or put it first on your PATH.\n",
    );
    process.exitCode = 2;
    return;
  }

  var fs = process.getBuiltinModule("node:fs");
  var path = process.getBuiltinModule("node:path");
  var url = process.getBuiltinModule("node:url");
  var root = path.dirname(path.dirname(fs.realpathSync(process.argv[1])));

  if (process.argv.length === 3 && process.argv[2] === "--version") {
    var manifest = fs.readFileSync(path.join(root, "package.json"), "utf8");
    process.stdout.on("error", function (error) {
      if (error.code === "EPIPE" || error.code === "EIO") return;
      process.exitCode = 1;
      process.stderr.write("hmz: error: the output could not be written: " + error.message + "\n");
    });
    process.stdout.write("hmz " + JSON.parse(manifest).version + "\n");
    return;
  }

  // A flow is TypeScript, and on some versions Node warns of that on every run. Of two variables that contradict each
  // other it warns too, and hmz itself goes by NO_COLOR.
  var emitWarning = process.emitWarning;
  process.emitWarning = function (warning, kind) {
    if (kind === "ExperimentalWarning" && /type stripping/i.test(String(warning))) return;
    if (/^The 'NO_COLOR' env is ignored due to the 'FORCE_COLOR' env being set/.test(String(warning))) return;
    emitWarning.apply(process, arguments);
  };

  // A checkout is run from its sources under this condition: its tests are.
  var source = process.execArgv.indexOf("--conditions=hmz-source") !== -1;
  var main = source ? path.join(root, "src", "cli", "main.ts") : path.join(root, "dist", "cli", "main.js");
  if (!fs.existsSync(main)) {
    process.stderr.write("hmz is not built: run `npm run build` in " + root + "\n");
    process.exitCode = 2;
    return;
  }
  keepCompiled(fs, path);
  import(url.pathToFileURL(main).href).then(function (cli) {
    return cli.run();
  });

  /** Keeps compiled code, in a directory that nobody else can write: what is planted there would run as us. */
  function keepCompiled(fs, path) {
    var uid = process.getuid ? process.getuid() : -1;
    var directory = path.join(process.env.TMPDIR || process.getBuiltinModule("node:os").tmpdir(), "humanize-" + uid);
    try {
      // Not recursive: under /proc, that never ends.
      if (!fs.existsSync(directory)) fs.mkdirSync(directory, { mode: 0o700 });
      var found = fs.lstatSync(directory);
      if (!found.isDirectory() || (uid !== -1 && (found.uid !== uid || (found.mode & 0o022) !== 0))) return;
      process.getBuiltinModule("node:module").enableCompileCache(path.join(directory, "compiled"));
    } catch (error) {
      // Without it hmz starts a little slower.
    }
  }
})();
