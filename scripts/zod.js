// What dist/vendor/zod.js is made of.
export * from "zod";
// oxlint-disable-next-line import/no-default-export -- zod has one, and flows import it.
export { default } from "zod";
