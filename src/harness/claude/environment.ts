/**
 * The environment that a `claude` process gets: built from a list, so that neither a parent Claude Code's own variables
 * nor another provider's key reaches it.
 */

const ALWAYS = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LANGUAGE",
  "TZ",
  "TMPDIR",
  "SSH_AUTH_SOCK",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "NODE_EXTRA_CA_CERTS",
  "CLAUDE_CONFIG_DIR",
  "CLAUDE_CODE_OAUTH_TOKEN",
  "CLAUDE_CODE_MAX_RETRIES",
  "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
  "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
  "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
  "CLAUDE_CODE_USE_BEDROCK",
  "CLAUDE_CODE_USE_VERTEX",
  "CLAUDE_CODE_USE_FOUNDRY",
  "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
  "CLAUDE_CODE_SKIP_VERTEX_AUTH",
  "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
  "API_TIMEOUT_MS",
  "MAX_THINKING_TOKENS",
  "DISABLE_TELEMETRY",
  "DISABLE_ERROR_REPORTING",
  "DISABLE_AUTOUPDATER",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "no_proxy",
] as const;

const PREFIXES = ["LC_", "XDG_", "ANTHROPIC_"] as const;

/** What a cloud's sign-in needs, only where the CLI is told to reach the model through that cloud. */
const CLOUDS = [
  { asked: "CLAUDE_CODE_USE_BEDROCK", prefixes: ["AWS_"] },
  { asked: "CLAUDE_CODE_USE_VERTEX", prefixes: ["GOOGLE_", "GCLOUD_", "CLOUDSDK_", "CLOUD_ML_", "VERTEX_"] },
  { asked: "CLAUDE_CODE_USE_FOUNDRY", prefixes: ["AZURE_"] },
] as const;

export function claudeEnvironment(
  given: Readonly<Record<string, string | undefined>>,
  { root }: { readonly root: boolean },
): Record<string, string> {
  const names = new Set<string>(ALWAYS);
  const prefixes: string[] = [...PREFIXES];
  for (const cloud of CLOUDS) if (isSet(given[cloud.asked])) prefixes.push(...cloud.prefixes);
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (names.has(name) || prefixes.some((prefix) => name.startsWith(prefix))) env[name] = value;
  }
  env["TERM"] = "dumb";
  // A result that comes before the sub-agents are done would end the turn under them.
  env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] = "1";
  // Without it, the CLI refuses to run without approvals as root.
  if (root) env["IS_SANDBOX"] = "1";
  return env;
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== "" && value !== "0" && value.toLowerCase() !== "false";
}
