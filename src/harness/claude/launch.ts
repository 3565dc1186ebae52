/** How a `claude` process is started for a turn: its arguments, and what it is told before the first prompt. */

import type { JsonSchema, TurnSetup } from "../../engine/ports.ts";
import type { Permission } from "../../flows/permission.ts";
import type { Fields } from "./fields.ts";
import { FLOW_SERVER } from "./tools.ts";

/** The CLI's permission modes that a session is started in. */
export type Mode = "bypassPermissions" | "default" | "plan";

/** Which conversation the process carries on. */
export type Conversation =
  | { readonly kind: "new"; readonly id: string }
  | { readonly kind: "resume"; readonly id: string }
  /** `parent` is the id of a conversation, or the path of the file of one. */
  | { readonly kind: "fork"; readonly parent: string; readonly id: string };

export interface LaunchOptions {
  readonly model: string;
  readonly effort: string;
  readonly permission: Permission;
  readonly setup: TurnSetup;
  /** Where the skills of the session are lodged; left out where it has none. */
  readonly skills?: string | undefined;
  /** Whether the turn is one of `/goal`, which runs on the CLI's own hooks. */
  readonly goal: boolean;
}

export interface Launch {
  readonly mode: Mode;
  /** A process started with an equal one can take the turn as it is. */
  readonly key: string;
  readonly initialize: Fields;
  argv(program: string, conversation: Conversation): readonly string[];
}

/** Seconds that the CLI waits for a hook. */
const HOOK_SECONDS = 900;

export function launchOf({ model, effort, permission, setup, skills, goal }: LaunchOptions): Launch {
  const mode = modeOf(permission, setup);
  const gates = setup.hung.has("pre_tool_use");
  const offers = setup.tools.length > 0;
  const schema = objectSchema(setup.schema);
  const rest = [
    ...(model === "" ? [] : ["--model", model]),
    ...(effort === "" || effort === "auto" ? [] : ["--effort", effort === "ultracode" ? "xhigh" : effort]),
    ...(skills === undefined ? [] : ["--add-dir", skills]),
    "--permission-mode",
    mode,
    "--permission-prompt-tool",
    "stdio",
    "--settings",
    JSON.stringify(settings(goal)),
    ...(schema === undefined ? [] : ["--json-schema", JSON.stringify(schema)]),
    ...(permission.online === "none" ? ["--disallowedTools", "WebSearch,WebFetch"] : []),
  ];
  const offered = setup.tools.map(({ name, about, schema }) => [name, about, schema]);
  return {
    mode,
    key: JSON.stringify([setup.place.workdir, rest, gates, offered]),
    initialize: {
      subtype: "initialize",
      ...(gates
        ? { hooks: { PreToolUse: [{ matcher: "*", hookCallbackIds: ["pre_tool_use"], timeout: HOOK_SECONDS }] } }
        : {}),
      ...(offers ? { sdkMcpServers: [FLOW_SERVER] } : {}),
    },
    argv: (program, conversation) => [
      program,
      "--print",
      "--input-format",
      "stream-json",
      "--output-format",
      "stream-json",
      "--verbose",
      "--include-partial-messages",
      ...conversationArguments(conversation),
      ...rest,
    ],
  };
}

/**
 * The schema as the CLI takes it: it makes a tool's input of it, so only that of an object, and it knows no draft by
 * name. Any other answer is read from the agent's text.
 */
function objectSchema(schema: JsonSchema | undefined): JsonSchema | undefined {
  if (schema?.["type"] !== "object") return undefined;
  const { $schema: _, ...rest } = schema;
  return rest;
}

function modeOf(permission: Permission, setup: TurnSetup): Mode {
  if (permission.local !== "all") return "plan";
  return setup.hung.has("permission_request") ? "default" : "bypassPermissions";
}

/**
 * The person's own settings hold, so that their sign-in, their memory files and what they deny do. Their hooks do not
 * run in a flow's turns, except with `/goal`, which the CLI refuses without hooks; and no model judges what another
 * does, as it would in plan mode.
 */
function settings(goal: boolean): Fields {
  return { ...(goal ? {} : { disableAllHooks: true }), disableAutoMode: "disable" };
}

function conversationArguments(conversation: Conversation): readonly string[] {
  switch (conversation.kind) {
    case "new":
      return ["--session-id", conversation.id];
    case "resume":
      return ["--resume", conversation.id];
    case "fork":
      return ["--resume", conversation.parent, "--fork-session", "--session-id", conversation.id];
  }
}
