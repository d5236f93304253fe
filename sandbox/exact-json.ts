/**
 * Parses a body, keeping as JSON.rawJSON any number that a double would change (0.10, 12345678901234567.89).
 * @throws {SyntaxError} the text is not JSON
 */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value, context: { source?: string }) =>
    typeof value === 'number' && context.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  )
}

/** The digits of a number, or of text that Django would accept as one. */
export function numberText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  if (JSON.isRawJSON(value)) return value.rawJSON
  return typeof value === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)
    ? value.trim()
    : undefined
}
