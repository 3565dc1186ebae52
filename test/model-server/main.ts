/** `node test/model-server/main.ts [--port 0] [--log FILE]`: prints `{"port":N}` and serves until it is ended. */

import { parseArgs } from "node:util";
import { startModelServer } from "./server.ts";

const { values } = parseArgs({ options: { port: { type: "string" }, log: { type: "string" } } });
const server = await startModelServer({
  port: Number(values.port ?? 0),
  ...(values.log === undefined ? {} : { log: values.log }),
});
console.log(JSON.stringify({ port: server.port }));
