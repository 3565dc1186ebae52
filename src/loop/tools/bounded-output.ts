/** Keeps a tool's result from filling the model's context: its head and its tail, and how much went between. */
export function boundedOutput(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = text.slice(0, wholeUntil(text, Math.ceil(most / 2)));
  const tail = text.slice(wholeUntil(text, text.length - Math.floor(most / 2)));
  return `${head}\n… ${text.length - head.length - tail.length} characters left out …\n${tail}`;
}

/** Not between the halves of a surrogate pair: half of one is no text, and some providers refuse it. */
function wholeUntil(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}
