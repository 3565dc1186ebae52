/** What the runner refuses before any agent starts. */

/** Raised for everything that is refused before a run has started anything. `hmz exec` exits with 2 for it. */
export class Refused extends Error {
  readonly code = "HMZ_REFUSED";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Refused";
  }
}
