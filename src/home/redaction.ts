/**
 * Taking secrets out of what is handed on: the values of this process's own secret variables, in each form in which
 * they are written, and whatever has the shape of a key. In doubt it takes out too much.
 */

type Env = Readonly<Record<string, string | undefined>>;

/** What stands in a secret's place. */
export const REDACTED = "[redacted]";

/** A part of a text that is taken out: from, to. */
export type Span = readonly [from: number, to: number];

/** A shorter value is a word like any other: taking it out would garble the rest. */
const SHORTEST_VALUE = 8;
/** The most characters that one secret has. A longer one is taken out in parts. */
export const LONGEST_SECRET = 64 * 1024;

/** The last word of a variable's name that says that its value is a secret. */
const SECRET_WORD = /(?:TOKEN|SECRET|KEY|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?$/;

/** The values of the variables of an environment that are named like secrets and keys. */
export function secretValues(env: Env): readonly string[] {
  const found = new Set<string>();
  for (const [name, value = ""] of Object.entries(env)) {
    const words = name.toUpperCase().split(/[^A-Z0-9]+/);
    if (!words.some((word) => SECRET_WORD.test(word)) && words.at(-1) !== "AUTH") continue;
    // A value of several lines, as a private key is, is shown a line at a time too, each with its number.
    for (const part of [value, ...(value.includes("\n") ? value.split("\n") : [])]) {
      const text = part.trim();
      if (text.length >= SHORTEST_VALUE) found.add(text);
    }
  }
  return [...found];
}

/** What takes secrets out of texts and values. */
export class Redaction {
  readonly #values: RegExp | undefined;

  /** @param values Texts that are secrets, whatever stands around them. */
  constructor(values: readonly string[]) {
    const forms = new Set(values.filter((value) => value !== "").flatMap(formsOf));
    // The longest first: one may be a part of another.
    const sorted = [...forms].sort((one, other) => other.length - one.length);
    this.#values = sorted.length === 0 ? undefined : new RegExp(sorted.map(literally).join("|"), "g");
  }

  /** For what this process was given. */
  static of(env: Env): Redaction {
    return new Redaction(secretValues(env));
  }

  /** The text without its secrets; the very same where it has none. */
  text(text: string): string {
    const spans = this.spans(text);
    return spans.length === 0 ? text : without(text, spans);
  }

  /** Where the secrets of a text stand: in order, apart from each other. */
  spans(text: string): readonly Span[] {
    const spans: Span[] = [];
    if (this.#values)
      for (const { index, 0: found } of matches(this.#values, text)) spans.push([index, index + found.length]);
    for (const rule of RULES) rule(text, spans);
    return spans.length < 2 ? spans : joined(spans);
  }

  /** A value of JSON without the secrets in its texts and its keys; the very same where it has none. */
  value(value: unknown): unknown {
    return new Walk(this).value(value, "");
  }

  /** The arguments of a program without their secrets. */
  argv(argv: readonly string[]): readonly string[] {
    return this.value(argv) as readonly string[];
  }

  /** One line of a file of JSON lines: JSON stays JSON, whatever its texts hold. */
  line(line: string): string {
    try {
      const value: unknown = JSON.parse(line);
      const redacted = this.value(value);
      if (redacted !== value) return JSON.stringify(redacted);
      // A key that is there twice is read as its last: the first one's value is in the line alone.
      const isWhole = JSON.stringify(value) === line || this.spans(line).length === 0;
      return isWhole ? line : JSON.stringify(value);
    } catch {
      // Torn, or nested too deeply to be walked.
      return this.text(line);
    }
  }
}

// ── the forms of a value ────────────────────────────────────────────────────────────────────────────────────────────

/** A value as it is written in a text: itself, in JSON, in JSON inside JSON, in a URL, in base64. */
function formsOf(value: string): readonly string[] {
  const json = inJson(value);
  const ascii = json.replace(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const bytes = Buffer.from(value);
  return [
    value,
    json,
    inJson(json),
    inJson(inJson(json)),
    ascii,
    inJson(ascii),
    json.replaceAll("/", "\\/"),
    inUrl(value),
    inUrl(value).replaceAll("%20", "+"),
    inUrl(value).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    ...[bytes.toString("base64"), bytes.toString("base64url")].map((text) => text.replace(/=+$/, "")),
    bytes.toString("hex"),
  ];
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function inUrl(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

// ── shapes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type Rule = (text: string, spans: Span[]) => void;

/** As `matchAll` has them, which makes an expression of its own each time: that costs more than most texts do. */
function* matches(expression: RegExp, text: string): Generator<RegExpExecArray> {
  expression.lastIndex = 0;
  for (let match = expression.exec(text); match; match = expression.exec(text)) {
    const { lastIndex } = expression;
    yield match;
    expression.lastIndex = lastIndex;
  }
}

/** The keys of vendors whose beginning is nothing else, wherever it stands. */
const VENDORS = [
  "sk-ant-[A-Za-z0-9_-]{8,512}",
  "gh[oprsu]_[A-Za-z0-9]{20,512}",
  "github_pat_[A-Za-z0-9_]{20,512}",
  "glpat-[A-Za-z0-9_-]{16,256}",
  "(?:AKIA|ASIA)[A-Z0-9]{16}",
  "xox[a-z]-[A-Za-z0-9-]{10,512}",
  "AIza[A-Za-z0-9_-]{30,64}",
  "ya29\\.[A-Za-z0-9_-]{20,1024}",
];
/** Those that could be the middle of a word. */
const VENDORS_ALONE = [
  "sk-[A-Za-z0-9_-]{16,512}",
  "(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,256}",
  "xapp-[A-Za-z0-9-]{10,512}",
  "hf_[A-Za-z0-9]{20,256}",
  "npm_[A-Za-z0-9]{30,256}",
  // A JSON Web Token: its first part is an object.
  "eyJ[A-Za-z0-9_-]{6,32768}\\.[A-Za-z0-9_-]{4,32768}(?:\\.[A-Za-z0-9_-]{0,8192}){0,3}",
  "(?:xai|gsk|pplx|r8|dop_v1)[-_][A-Za-z0-9]{20,256}",
];
/** The start of a word: an escape sequence of JSON, or of a URL, ends in a letter and is no part of one. */
const ALONE = "(?:(?<![A-Za-z0-9_-])|(?<=\\\\[bfnrt]|\\\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}))";
const VENDOR = new RegExp(`${VENDORS.join("|")}|${ALONE}(?:${VENDORS_ALONE.join("|")})`, "g");

/** `Bearer …` */
const SIGN_IN = /(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))bearer(?:\s|%20|\+){1,8}(?<value>[^\s"'`<>\\,;]{8,65536})/gi;

/** The names that assign a secret end in one of these words. */
const NAMES =
  "tokens?|secrets?|api[-_ ]?keys?|access[-_ ]?keys?|private[-_]?keys?|passwords?|passwd|passphrases?|credentials?|authorization|cookie";
const NAME_ENDS = new RegExp(`(?:${NAMES})$`, "i");
const NAMED = new RegExp(`(?:${NAMES})(?=[\\\\"'\`\\]\\s=:]|%3[ad])`, "gi");
/** Between a name and what is assigned: a closing quote, and a sign. */
const SIGN = /(?:\\{0,15}["'`])?\]?\s{0,16}(?::=|=>|==?|:|%3[AaDd])\s{0,16}/y;
/** After an option of a command line, a space is enough. */
const OPTION = /(?:^|[\s"'`\\]|\\[nrt])--?[A-Za-z][\w-]{0,64}$/;
const OPTION_ALONE = /^--?[A-Za-z][\w-]{0,64}$/;
const SPACES = /\s{1,16}(?!-)/y;
const QUOTE = /(\\{0,15})(["'`])/y;
const BARE = /[^\s"'`]{1,65536}/y;
/** How much is spent, not what is secret. */
const COUNT = /^[+-]?\d[\d_,.]{0,14}[kKmMbB]?$/;
/** What holds something else: it is looked at by itself. */
const OPENING = /^[{[(]/;
/** What stands for a value that is not written here. */
const REFERENCE =
  /^(?:null|undefined|none|true|false|string|number|boolean|unknown|str|int|bytes|\$\{?[A-Za-z_]\w*\}?|\[redacted\]|<[\w -]+>|\*+)$/i;

/** The parts of a URL's query. */
const QUERY = /[?&](?<name>[\w.~%[\]-]{1,128})=(?<value>[^&\s"'`#<>\\]{1,65536})/g;
const QUERY_NAME = /(?:token|secret|key|password|passwd|pwd|pass|sig|signature|auth|credential|jwt|session)s?$/i;

/** Who a URL signs in as. */
const USERINFO = /(?<=:\/\/|:\\\/\\\/|%3[aA]%2[fF]%2[fF])[^\s/?#"'`\\<>]{1,4096}(?:@|%40)/g;

const KEY_BEGINS = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const KEY_ENDS = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
/** What the inside of a key is made of, and the escapes that part its lines. */
const KEY_BODY = /(?:[A-Za-z0-9+/=\s:,.]|\\+[nrt/]){0,65536}/y;

const RULES: readonly Rule[] = [
  (text, spans) => {
    for (const { index, 0: found } of matches(VENDOR, text)) spans.push([index, index + found.length]);
  },
  (text, spans) => {
    for (const { index, 0: found, groups } of matches(SIGN_IN, text)) {
      const { value = "" } = groups ?? {};
      if (!REFERENCE.test(value)) spans.push([index + found.length - value.length, index + found.length]);
    }
  },
  assignments,
  (text, spans) => {
    if (!text.includes("=")) return;
    for (const { index, 0: found, groups } of matches(QUERY, text)) {
      const { name = "", value = "" } = groups ?? {};
      if (QUERY_NAME.test(name) && !isCount(name, value))
        spans.push([index + found.length - value.length, index + found.length]);
    }
  },
  (text, spans) => {
    if (!text.includes("//") && !text.includes("\\/") && !/%2f/i.test(text)) return;
    for (const { index, 0: found } of matches(USERINFO, text)) {
      spans.push([index, index + found.length - (found.endsWith("@") ? 1 : 3)]);
    }
  },
  privateKeys,
];

function assignments(text: string, spans: Span[]): void {
  NAMED.lastIndex = 0;
  for (let named = NAMED.exec(text); named; named = NAMED.exec(text)) {
    const value = assigned(text, named.index, NAMED.lastIndex);
    if (value) spans.push(value);
  }
}

/** The value that a name is given, where it stands before one. */
function assigned(text: string, nameFrom: number, nameTo: number): Span | undefined {
  SIGN.lastIndex = nameTo;
  let from: number;
  const sign = SIGN.exec(text);
  if (sign) from = SIGN.lastIndex;
  else {
    if (!OPTION.test(text.slice(Math.max(0, nameFrom - 66), nameTo))) return undefined;
    SPACES.lastIndex = nameTo;
    if (!SPACES.test(text)) return undefined;
    from = SPACES.lastIndex;
  }
  const name = text.slice(nameFrom, nameTo);
  QUOTE.lastIndex = from;
  const quote = QUOTE.exec(text);
  if (quote) {
    const [whole, slashes = "", mark = ""] = quote;
    const begin = from + whole.length;
    const end = endOfQuoted(text, begin, slashes.length, mark);
    return end === begin || isNoSecret(name, text.slice(begin, Math.min(end, begin + 64))) ? undefined : [begin, end];
  }
  // A header's value is all of its line.
  if (/^(?:authorization|cookie)$/i.test(name)) {
    const [line = ""] = /^[^\n\r"']{0,65536}/.exec(text.slice(from, from + LONGEST_SECRET)) ?? [];
    return line === "" ? undefined : [from, from + line.length];
  }
  BARE.lastIndex = from;
  const [bare = ""] = BARE.exec(text) ?? [];
  const value = bare.replace(/[\\,;)}\]]+$/, "");
  if (value === "" || isNoSecret(name, value)) return undefined;
  // `the token: it is…` is prose; `token=it` is not.
  if (sign && /:\s/.test(sign[0]) && value.length < 6) return undefined;
  return [from, from + value.length];
}

function isNoSecret(name: string, value: string): boolean {
  return OPENING.test(value) || REFERENCE.test(value) || isCount(name, value);
}

/** Whether it is a number of tokens, which is no secret. */
function isCount(name: string, value: string): boolean {
  return /tokens?$/i.test(name) && COUNT.test(value);
}

/**
 * Where a quoted text ends. Inside JSON inside JSON its quotes stand behind backslashes: as many as the opening one, and
 * twice as many and two for each backslash of the text itself.
 */
function endOfQuoted(text: string, from: number, slashes: number, mark: string): number {
  const most = Math.min(text.length, from + LONGEST_SECRET);
  const round = 2 * (slashes + 1);
  for (let at = text.indexOf(mark, from); at !== -1 && at < most; at = text.indexOf(mark, at + 1)) {
    let run = 0;
    while (at - run > from && text.charCodeAt(at - run - 1) === 0x5c) run += 1;
    if (run % round === slashes) return at - slashes;
  }
  return most;
}

/** A private key, from its first line to its last; one that was cut ends with what looks like one. */
function privateKeys(text: string, spans: Span[]): void {
  if (!text.includes("-----BEGIN ")) return;
  const ends = [...matches(KEY_ENDS, text)].map(({ index, 0: found }): Span => [index, index + found.length]);
  let next = 0;
  let over = 0;
  for (const { index, 0: found } of matches(KEY_BEGINS, text)) {
    if (index < over) continue;
    const from = index + found.length;
    while ((ends[next]?.[0] ?? Infinity) < from) next += 1;
    const end = ends[next];
    KEY_BODY.lastIndex = from;
    KEY_BODY.test(text);
    over = end && end[0] - from <= LONGEST_SECRET ? end[1] : Math.max(from, KEY_BODY.lastIndex);
    spans.push([index, over]);
  }
}

// ── texts and values ────────────────────────────────────────────────────────────────────────────────────────────────

function joined(spans: Span[]): readonly Span[] {
  spans.sort(([one], [other]) => one - other);
  const whole: [number, number][] = [];
  for (const [from, to] of spans) {
    const last = whole.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else whole.push([from, to]);
  }
  return whole;
}

/** A text with something else in the place of its spans. */
export function without(text: string, spans: readonly Span[]): string {
  let kept = "";
  let at = 0;
  for (const [from, to] of spans) {
    kept += text.slice(at, from) + REDACTED;
    at = to;
  }
  return kept + text.slice(at);
}

function nameFor(key: string, said: unknown): string | undefined {
  if (NAME_ENDS.test(key)) return key;
  return key === "value" && typeof said === "string" ? said : undefined;
}

/** One walk over a value. What changes nothing is handed back as it is. */
class Walk {
  readonly #redaction: Redaction;
  /** A private key has begun, and not ended: its lines may be texts of their own. */
  #insideKey = false;

  constructor(redaction: Redaction) {
    this.#redaction = redaction;
  }

  /** @param name The name that the value is given, or that something around it is: `""` for none that says anything. */
  value(value: unknown, name: string): unknown {
    if (typeof value === "string") return this.#text(value, name);
    if (typeof value === "number") return name !== "" && !/tokens?$/i.test(name) ? REDACTED : value;
    if (typeof value !== "object" || value === null) return value;
    return Array.isArray(value)
      ? this.#list(value, name)
      : this.#record(value as Readonly<Record<string, unknown>>, name);
  }

  #list(list: readonly unknown[], name: string): readonly unknown[] {
    let changed = false;
    const walked = list.map((item, at) => {
      const before: unknown = at > 0 ? list[at - 1] : undefined;
      // `["--password", "…"]`
      const isValue = typeof before === "string" && OPTION_ALONE.test(before) && NAME_ENDS.test(before);
      const made = this.value(item, isValue && typeof item === "string" && !item.startsWith("-") ? before : name);
      changed ||= made !== item;
      return made;
    });
    return changed ? walked : list;
  }

  #record(record: Readonly<Record<string, unknown>>, name: string): unknown {
    let changed = false;
    // `{"key": "api_key", "value": "…"}`
    const said = [record["key"], record["name"]].find((text) => typeof text === "string" && NAME_ENDS.test(text));
    const entries = Object.entries(record).map(([key, value]): [string, unknown] => {
      const shown = this.#redaction.text(key);
      const made = this.value(value, nameFor(key, said) ?? name);
      changed ||= shown !== key || made !== value;
      return [shown, made];
    });
    return changed ? Object.fromEntries(entries) : record;
  }

  #text(text: string, name: string): string {
    if (this.#insideKey) {
      KEY_ENDS.lastIndex = 0;
      const end = KEY_ENDS.test(text) ? KEY_ENDS.lastIndex : text.length;
      this.#insideKey = end === text.length && !text.endsWith("-----");
      return REDACTED + this.#redaction.text(text.slice(end));
    }
    if (text.includes("-----BEGIN ")) {
      const begin = text.search(KEY_BEGINS);
      KEY_ENDS.lastIndex = Math.max(0, begin);
      this.#insideKey = begin !== -1 && !KEY_ENDS.test(text);
    }
    if (name === "" || text === "" || isNoSecret(name, text)) return this.#redaction.text(text);
    return REDACTED;
  }
}
