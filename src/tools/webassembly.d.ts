// The used part of WebAssembly's types, which TypeScript declares only in its DOM library.

declare const WebAssembly: {
  readonly Module: new (code: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};
