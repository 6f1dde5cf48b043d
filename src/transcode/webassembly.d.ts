// What is used of WebAssembly, which no library of TypeScript's but the browser's declares.

declare const WebAssembly: {
  readonly Module: new (code: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};
