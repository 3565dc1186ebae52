import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { milliseconds, parseDuration } from "./duration.ts";

describe("parseDuration", () => {
  const accepted: readonly (readonly [string, number])[] = [
    ["90", 90_000],
    ["0", 0],
    ["1.5", 1_500],
    [".5", 500],
    ["5.", 5_000],
    [" 10 ", 10_000],
    ["1h30m", 5_400_000],
    ["30m1h", 5_400_000],
    ["2d", 172_800_000],
    ["1w", 604_800_000],
    ["1.5h", 5_400_000],
    ["1H 30M", 5_400_000],
    ["45s", 45_000],
    ["PT1H30M", 5_400_000],
    ["pt90s", 90_000],
    ["P1D", 86_400_000],
    ["P1DT12H", 129_600_000],
    ["P2W", 1_209_600_000],
    ["PT0.5S", 500],
    ["01:30:00", 5_400_000],
    ["0:00:01.5", 1_500],
    ["100:00:00", 360_000_000],
  ];
  for (const [text, expected] of accepted) {
    it(`reads '${text}'`, () => assert.equal(parseDuration(text), expected));
  }

  const none = (text: string) => `'${text}' is not a duration: use seconds, 1h30m, or ISO 8601 like PT1H30M`;
  const refused: readonly (readonly [string, string])[] = [
    ["", none("")],
    ["soon", none("soon")],
    ["1x", none("1x")],
    ["1h30", none("1h30")],
    ["h", none("h")],
    ["P", none("P")],
    ["PT", none("PT")],
    ["P1DT", none("P1DT")],
    ["P1H", none("P1H")],
    ["P1M", none("P1M")],
    ["1:30", none("1:30")],
    ["1:60:00", none("1:60:00")],
    ["0x10", none("0x10")],
    ["1e3", none("1e3")],
    ["1,5", none("1,5")],
    ["1h1h", "'1h1h' names a unit twice"],
    ["5m2h5m", "'5m2h5m' names a unit twice"],
    ["-5", "'-5' is negative"],
    ["-1h", "'-1h' is negative"],
    ["-PT1H", "'-PT1H' is negative"],
    ["inf", "'inf' is not a valid duration: must be finite and not negative"],
    ["-Infinity", "'-Infinity' is not a valid duration: must be finite and not negative"],
    ["nan", "'nan' is not a valid duration: must be finite and not negative"],
    ["999999999999d", "duration '999999999999d' is too long"],
    ["9".repeat(400), `duration '${"9".repeat(400)}' is too long`],
  ];
  for (const [text, message] of refused) {
    it(`refuses '${text.slice(0, 20)}'`, () => {
      assert.throws(() => parseDuration(text), { name: "RangeError", message });
    });
  }

  it("reads back what it is written as", () => {
    const parts = fc.record({ d: fc.nat(400), h: fc.nat(50), m: fc.nat(120), s: fc.nat(120) });
    fc.assert(
      fc.property(parts, ({ d, h, m, s }) => {
        const expected = (((d * 24 + h) * 60 + m) * 60 + s) * 1_000;
        assert.equal(parseDuration(`${d}d${h}h${m}m${s}s`), expected);
        assert.equal(parseDuration(`P${d}DT${h}H${m}M${s}S`), expected);
        assert.equal(parseDuration(String(expected / 1_000)), expected);
        if (m < 60 && s < 60) assert.equal(parseDuration(`${d * 24 + h}:${m}:${s}`), expected);
      }),
    );
  });

  it("never answers but a finite number that is not negative", () => {
    const alphabet = fc.constantFrom(..."0123456789.:PTWDHMSpthms -+e∞n");
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: alphabet, maxLength: 30 }), fc.string()), (text) => {
        let read: number;
        try {
          read = parseDuration(text);
        } catch (error) {
          assert.ok(error instanceof RangeError);
          return;
        }
        assert.ok(Number.isFinite(read) && read >= 0, `${text} → ${read}`);
      }),
      { numRuns: 2_000 },
    );
  });

  it("refuses every negative", () => {
    fc.assert(
      fc.property(fc.double({ max: -Number.MIN_VALUE, noNaN: true, noDefaultInfinity: true }), (amount) => {
        assert.throws(() => milliseconds(amount), RangeError);
        assert.throws(() => parseDuration(String(amount)), RangeError);
      }),
    );
  });
});
