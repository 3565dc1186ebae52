/** Directories of flows that are there and cannot be read: a list without their flows would look whole. */

import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import { placesOf } from "../catalog/places.ts";
import { reasonOf, refuseNoDirectory } from "../home/unusable-path.ts";

/** A sentence for each. @param workspace Absolute. */
export function unreadableFlows(workspace: string): readonly string[] {
  return placesOf({ workspace }).flatMap(({ flowverse, directory }) => {
    if (flowverse === "official") return [];
    try {
      refuseNoDirectory(dirname(directory));
      refuseNoDirectory(directory);
    } catch (error) {
      return [`no flow of ${flowverse} is listed: ${(error as Error).message}`];
    }
    try {
      readdirSync(directory);
      return [];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      return [`no flow of ${flowverse} is listed: ${directory} cannot be read: ${reasonOf(error)}`];
    }
  });
}
