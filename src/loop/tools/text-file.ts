/** A file's bytes as text, or the refusal to take bytes for text: writing them back would destroy them. */
export function decodeText(data: Uint8Array, path: string): string {
  try {
    if (data.includes(0)) throw new TypeError("a NUL byte");
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch (error) {
    throw new Error(`${path} is not UTF-8 text (${data.length} bytes); look at it with shell`, { cause: error });
  }
}
