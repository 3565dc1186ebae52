/** The flags of a command: made of the schema of what it takes, and read from the words of a line. */

import { z } from "zod";
import { nearest } from "./nearest.ts";

/** How the words after a flag are read. */
type Kind =
  | { readonly kind: "text" }
  | { readonly kind: "number"; readonly whole: boolean }
  | { readonly kind: "choice"; readonly of: readonly (string | number | boolean)[] }
  | { readonly kind: "json" }
  /** The first of these that reads it. */
  | { readonly kind: "either"; readonly of: readonly Kind[] };

/** A flag of a command, for one field of what it takes. */
export interface Flag {
  readonly field: string;
  /** As help writes it, without its dashes: `max-items` for a field `maxItems`. */
  readonly name: string;
  readonly about: string;
  readonly required: boolean;
  readonly default?: unknown;
  readonly value: { readonly kind: "switch" } | Kind;
  /** Whether it is given once for each value. */
  readonly many: boolean;
}

/** What a line came to. */
export type Line =
  | { readonly kind: "help" }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "read"; readonly input: Readonly<Record<string, unknown>> };

const FIELD = /^[A-Za-z][A-Za-z0-9_-]*$/;

/** The flags of one command, by everything that they are spelled as. */
export class Flags {
  readonly all: readonly Flag[];
  /** Without the dashes; a switch's answer stands beside it. */
  readonly #spelled = new Map<string, { readonly flag: Flag; readonly answer?: boolean }>();

  /** @throws RangeError for a field that cannot be a flag, named after `said`. */
  constructor(said: string, takes: z.ZodObject | undefined) {
    this.all = Object.entries(takes?.shape ?? {}).map(([field, schema]) => flagOf(said, field, schema as z.ZodType));
    this.#spelled.set("help", { flag: HELP });
    for (const flag of this.all) {
      for (const spelled of new Set([flag.name, flag.field])) {
        this.#spell(said, spelled, { flag });
        if (flag.value.kind === "switch") this.#spell(said, `no-${spelled}`, { flag, answer: false });
      }
    }
  }

  #spell(said: string, spelled: string, meant: { readonly flag: Flag; readonly answer?: boolean }): void {
    const other = this.#spelled.get(spelled);
    if (other) {
      const taken = other.flag === HELP ? "asks for help" : `is the field '${other.flag.field}'`;
      throw new RangeError(`${said}: the field '${meant.flag.field}' cannot be a flag: --${spelled} ${taken} already`);
    }
    this.#spelled.set(spelled, meant);
  }

  /** Reads the words of a line. A value that begins with `--` is written `--flag=VALUE`, or after a `--` of its own. */
  read(words: readonly string[]): Line {
    const end = words.indexOf("--");
    const flagged = end === -1 ? words : words.slice(0, end);
    if (flagged.some((word) => word === "--help" || word === "-h")) return { kind: "help" };
    const input: Record<string, unknown> = {};
    for (let at = 0; at < words.length; at++) {
      const word = words[at] as string;
      if (word === "--" && at + 1 === words.length) break;
      if (!/^-+[^\s-]/.test(word)) return refused(this.#unexpected(word === "--" ? (words[at + 1] as string) : word));
      const equals = word.indexOf("=");
      const written = equals === -1 ? word : word.slice(0, equals);
      const meant = written.startsWith("--") ? this.#spelled.get(written.slice(2)) : undefined;
      if (!meant) return refused(this.#unknown(written));
      let text = equals === -1 ? undefined : word.slice(equals + 1);
      const { flag, answer } = meant;
      if (flag.value.kind === "switch") {
        const given = switched(text, answer ?? true);
        if (given === undefined) {
          return refused(`${written} takes no value: --${flag.name} says yes, --no-${flag.name} says no`);
        }
        input[flag.field] = given;
        continue;
      }
      let over = false;
      if (text === undefined) {
        const next = words[at + 1];
        over = next === "--" && at + 2 < words.length;
        if (!over && (next === undefined || isFlag(next))) {
          return refused(`${written} needs a value; one that begins with dashes is written ${written}=VALUE`);
        }
        text = words[at + (over ? 2 : 1)] as string;
        at += over ? 2 : 1;
      }
      const value = valueOf(flag.value, text);
      if (value === UNREAD) return refused(`${written}: ${JSON.stringify(text)} is not ${described(flag.value)}`);
      input[flag.field] = flag.many ? [...((input[flag.field] as unknown[] | undefined) ?? []), value] : value;
      // Nothing after a `--` is a flag.
      if (over && at + 1 < words.length) return refused(this.#unexpected(words[at + 1] as string));
    }
    const missing = this.all.filter(({ required, field }) => required && !(field in input));
    if (missing.length > 0) return refused(`needs ${missing.map(({ name }) => `--${name}`).join(", ")}`);
    return { kind: "read", input };
  }

  #unexpected(word: string): string {
    return `does not know what to do with ${JSON.stringify(word)}: ${this.#known()}`;
  }

  #unknown(written: string): string {
    const near = nearest(written.replace(/^-+/, ""), this.#spelled.keys());
    return `there is no ${written}; ${near === undefined ? this.#known() : `did you mean --${near}?`}`;
  }

  #known(): string {
    return this.all.length === 0
      ? "it takes nothing"
      : `it takes ${this.all.map(({ name }) => `--${name}`).join(", ")}`;
  }
}

const HELP: Flag = { field: "help", name: "help", about: "", required: false, value: { kind: "text" }, many: false };

/** Whether a word stands where a flag would, so that it is no value: a slip as well as a flag that is known. */
function isFlag(word: string): boolean {
  return word === "--" || /^--[A-Za-z][A-Za-z0-9_-]*(=|$)/.test(word);
}

function refused(why: string): Line {
  return { kind: "refused", why };
}

function switched(text: string | undefined, answer: boolean): boolean | undefined {
  if (text === undefined || text === "true") return answer;
  return text === "false" ? !answer : undefined;
}

// ── what a schema says ──────────────────────────────────────────────────────────────────────────────────────────────

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema | boolean;
  readonly prefixItems?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly not?: unknown;
  readonly description?: string;
  readonly default?: unknown;
  readonly $ref?: string;
}

interface Root extends Schema {
  readonly properties: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly $defs?: Readonly<Record<string, Schema>>;
}

function flagOf(said: string, field: string, schema: z.ZodType): Flag {
  const cannot = (why: string): never => {
    throw new RangeError(`${said}: the field '${field}' cannot be a flag: ${why}`);
  };
  if (!FIELD.test(field)) cannot("a flag is named with letters, digits, `_` and `-`");
  const root = jsonOf(field, schema, cannot);
  const given = root.properties[field] as Schema;
  const kind = kindOf(given, root);
  if (kind === undefined) return cannot("no text is a value of it; take text and make the value of it");
  const about = given.description ?? resolved(given, root).description ?? "";
  return {
    field,
    name: kebab(field),
    about,
    required: given.default === undefined && (root.required ?? []).includes(field),
    ...(given.default === undefined ? {} : { default: given.default }),
    ...kind,
  };
}

/** What zod makes of text itself, where it is asked to coerce. */
const COERCED = new Set(["date", "bigint"]);
const NOT_IN_JSON = new Set([
  "bigint",
  "custom",
  "date",
  "function",
  "map",
  "nan",
  "promise",
  "set",
  "symbol",
  "transform",
  "undefined",
  "void",
]);

function jsonOf(field: string, schema: z.ZodType, cannot: (why: string) => never): Root {
  const strange = new Set<string>();
  const made = z.toJSONSchema(z.object({ [field]: schema }), {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      const { type, ...def } = zodSchema._zod.def;
      if (!NOT_IN_JSON.has(type)) return;
      if (COERCED.has(type) && "coerce" in def && def.coerce) jsonSchema.type = "string";
      else strange.add(type);
    },
  });
  if (strange.size > 0) {
    return cannot(`no text is a ${[...strange].join(", ")}; take text and make the value of it with .transform()`);
  }
  return made as unknown as Root;
}

function resolved(schema: Schema, root: Root): Schema {
  const name = /^#\/\$defs\/(.+)$/.exec(schema.$ref ?? "")?.[1];
  return (name === undefined ? undefined : root.$defs?.[name]) ?? schema;
}

function kindOf(given: Schema, root: Root): Pick<Flag, "value" | "many"> | undefined {
  const schema = withoutNull(resolved(given, root), root);
  if (schema === undefined) return undefined;
  if (schema.type === "boolean" && schema.const === undefined) return { value: { kind: "switch" }, many: false };
  if (schema.type === "array" && schema.prefixItems === undefined) {
    const items = typeof schema.items === "object" ? schema.items : {};
    const value = valueKind(items, root);
    return value && { value, many: true };
  }
  const value = valueKind(schema, root);
  return value && { value, many: false };
}

/** A schema without its `null`, which no text is; `undefined` where nothing else is left. */
function withoutNull(schema: Schema, root: Root): Schema | undefined {
  if (schema.not !== undefined || schema.type === "null") return undefined;
  if (Array.isArray(schema.type)) {
    const types = (schema.type as readonly string[]).filter((type) => type !== "null");
    return { ...schema, type: types.length === 1 ? (types[0] as string) : types };
  }
  const { anyOf, ...rest } = schema;
  if (!anyOf) return schema;
  const left = anyOf.filter((one) => resolved(one, root).type !== "null");
  if (left.length === 0) return undefined;
  return left.length === 1 ? { ...rest, ...resolved(left[0] as Schema, root) } : { ...schema, anyOf: left };
}

function valueKind(given: Schema, root: Root): Kind | undefined {
  const schema = withoutNull(resolved(given, root), root);
  if (schema === undefined) return undefined;
  const choices = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  if (choices) {
    const of = choices.filter((one) => ["string", "number", "boolean"].includes(typeof one));
    return of.length === 0 ? undefined : { kind: "choice", of: of as (string | number | boolean)[] };
  }
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return either(alternatives.map((one) => valueKind(one, root)));
  if (schema.allOf?.[0]) return valueKind(schema.allOf[0], root);
  if (Array.isArray(schema.type)) {
    return either((schema.type as readonly string[]).map((type) => valueKind({ ...schema, type }, root)));
  }
  switch (schema.type) {
    case "string":
      return { kind: "text" };
    case "number":
      return { kind: "number", whole: false };
    case "integer":
      return { kind: "number", whole: true };
    case "boolean":
      return { kind: "choice", of: [true, false] };
    case undefined:
      return { kind: "either", of: [{ kind: "json" }, { kind: "text" }] };
    default:
      return { kind: "json" };
  }
}

function either(kinds: readonly (Kind | undefined)[]): Kind | undefined {
  const of = kinds.filter((kind) => kind !== undefined);
  if (of.length === 0) return undefined;
  if (of.every(({ kind }) => kind === "json")) return { kind: "json" };
  const choices = of.flatMap((kind) => (kind.kind === "choice" ? kind.of : []));
  return of.every(({ kind }) => kind === "choice") ? { kind: "choice", of: choices } : { kind: "either", of };
}

function kebab(field: string): string {
  return field
    .replaceAll("_", "-")
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .toLowerCase();
}

// ── what a word says ────────────────────────────────────────────────────────────────────────────────────────────────

const UNREAD = Symbol("not a value of its flag");
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function valueOf(kind: Kind, text: string): unknown {
  switch (kind.kind) {
    case "text":
      return text;
    case "number": {
      const number = Number(text);
      return NUMBER.test(text) && Number.isFinite(number) && (!kind.whole || Number.isInteger(number))
        ? number
        : UNREAD;
    }
    case "choice":
      return kind.of.find((one) => String(one) === text) ?? UNREAD;
    case "json":
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return UNREAD;
      }
    case "either":
      for (const one of kind.of) {
        const value = valueOf(one, text);
        if (value !== UNREAD) return value;
      }
      return UNREAD;
  }
}

/** A value of a flag, in words. */
function described(kind: Exclude<Flag["value"], { kind: "switch" }>): string {
  switch (kind.kind) {
    case "text":
      return "text";
    case "number":
      return kind.whole ? "a whole number" : "a number";
    case "choice":
      return kind.of.length === 1 ? String(kind.of[0]) : `one of ${kind.of.join(", ")}`;
    case "json":
      return "JSON";
    case "either":
      return kind.of.map(described).join(", nor ");
  }
}

/** What stands for a flag's value in its help. */
export function placeholder({ value, name }: Flag): string {
  switch (value.kind) {
    case "switch":
      return "";
    case "choice":
      return `{${value.of.join(",")}}`;
    case "json":
      return "JSON";
    case "number":
      return "N";
    default:
      return name.toUpperCase();
  }
}
