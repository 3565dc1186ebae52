/** A block of code in a page that is a part of an example. */
export interface MarkedBlock {
  readonly file: string;
  readonly region: string | undefined;
  readonly language: string;
  readonly text: string;
}

export function markedBlocks(page: string): readonly MarkedBlock[];
export function filled(root: string, page: string): string;
export function regionOf(source: string, name: string | undefined): string;
