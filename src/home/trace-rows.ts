/** Where the slices of a trace stand: threads of processes, and lanes where slices of one thread would overlap. */

/** A thread of the trace. What stands on it is nested or follows on: whoever draws it drops what overlaps. */
export interface Lane {
  readonly pid: number;
  readonly tid: number;
  /** Where its last slice ended, or began: µs. Nothing on it begins earlier. */
  last: number;
  /** Slices on it that have begun and not ended, the innermost last. */
  readonly open: OpenSlice[];
}

/** A slice that has begun. Known by identity. */
export interface OpenSlice {
  readonly lane: Lane;
  readonly ts: number;
}

/** A thread, with as many lanes as slices of it ever overlapped. */
export class Row {
  readonly lanes: Lane[] = [];
  readonly #newLane: (number: number) => Lane;

  /** @param newLane Makes a lane; the first is 1. */
  constructor(newLane: (number: number) => Lane) {
    this.#newLane = newLane;
  }

  /** Begins a slice beside whatever is going on the row. */
  begin(at: number): OpenSlice {
    let lane = this.lanes.find(({ open }) => open.length === 0);
    if (!lane) {
      lane = this.#newLane(this.lanes.length + 1);
      this.lanes.push(lane);
    }
    return begun(lane, Math.max(at, lane.last));
  }

  /** Begins a slice inside another: on its lane, where nothing else is open there; beside it otherwise. */
  beginInside(holder: OpenSlice, at: number): OpenSlice {
    const { lane } = holder;
    // After the holder's own beginning: of two that begin at once, the inner one could be drawn as the outer.
    if (lane.open.at(-1) === holder) return begun(lane, Math.max(at, lane.last, holder.ts + 1));
    return this.begin(at);
  }
}

function begun(lane: Lane, ts: number): OpenSlice {
  const slice = { lane, ts };
  lane.open.push(slice);
  lane.last = ts;
  return slice;
}

/** Ends a slice; whatever stands inside it was ended before. Returns how long it took, in µs. */
export function lasted(slice: OpenSlice, at: number): number {
  const { lane, ts } = slice;
  const end = Math.max(at, lane.last, ts + 1);
  lane.open.splice(lane.open.indexOf(slice), 1);
  lane.last = end;
  return end - ts;
}
