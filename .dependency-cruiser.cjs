/**
 * The arrows between rooms: imports point one way. An import that points back is an error, and so is a program started
 * anywhere but in process/.
 */
const rooms = {
  flows: [],
  engine: ["flows"],
  process: [],
  harness: ["flows", "engine", "process"],
  loop: ["flows", "engine"],
  machine: ["flows", "engine", "process"],
  catalog: ["flows", "engine"],
  home: ["flows", "engine"],
  fakes: ["flows", "engine", "catalog", "home"],
  sdk: ["flows", "engine", "process", "harness", "loop", "machine", "catalog", "home"],
  cli: ["sdk", "flows"],
};

module.exports = {
  forbidden: [
    ...Object.entries(rooms).map(([room, allowed]) => ({
      name: `${room}-imports-only-${allowed.join("-") || "itself"}`,
      severity: "error",
      from: { path: `^src/${room}/`, pathNot: "\\.test\\.ts$" },
      to: { path: "^src/", pathNot: `^src/(${[room, ...allowed].join("|")})/` },
    })),
    {
      name: "only-process-starts-programs",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/process/|\\.test\\.ts$" },
      to: { path: "^(node:)?child_process$" },
    },
    {
      name: "flows-is-light",
      comment: "what a flow imports loads in a few milliseconds: zod, and Node's own modules",
      severity: "error",
      from: { path: "^src/flows/", pathNot: "\\.test\\.ts$" },
      to: { dependencyTypes: ["npm"], pathNot: "node_modules/zod/" },
    },
    {
      name: "no-circle-at-run-time",
      severity: "error",
      from: { path: "^src/" },
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "no-test-code-in-the-product",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$" },
      to: { path: "^(test|bench|examples|scripts)/" },
    },
  ],
  options: {
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["hmz-source", "import", "default"] },
  },
};
