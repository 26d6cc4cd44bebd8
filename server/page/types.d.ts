// What TypeScript's compiler is told about the page's modules, which it only checks (./dev lint). Not served.

// Elements that are looked up may be of any kind: their ids and classes are checked by the tests.
interface Document {
  getElementById(id: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}
interface Element {
  querySelector(selectors: string): any;
  querySelectorAll(selectors: string): NodeListOf<any>;
}

// Newer than the compiler's own declarations.
interface Uint8ArrayConstructor {
  fromBase64(text: string): Uint8Array;
}
declare const OffscreenCanvas: any;
declare const DecompressionStream: any;
