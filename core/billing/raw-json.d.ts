// The type library of TypeScript 7.0 does not know these yet (ECMAScript: JSON.parse source text access); Node 24 does.
interface JSON {
  rawJSON(text: string): { readonly rawJSON: string }
  isRawJSON(value: unknown): value is { readonly rawJSON: string }
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown
}
