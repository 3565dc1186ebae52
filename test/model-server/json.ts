/** Reads of foreign JSON that never throw: what is not of the wanted kind is its empty value. */

export type Json = Readonly<Record<string, unknown>>;

export function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The text of a message's content, in whichever dialect's blocks. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map((block) => string(object(block)["text"]))
    .filter((text) => text !== "")
    .join("\n");
}
