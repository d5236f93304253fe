/**
 * A body as it was sent: a number that a double would change (0.10, 12345678901234567.89) stays its text, as a
 * JSON.rawJSON. Throws a SyntaxError where the text is no JSON.
 */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value, context: { source?: string }) =>
    typeof value === 'number' && context.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  )
}

/** The digits of a number, or of a text that Django would take for one. */
export function numberText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  if (JSON.isRawJSON(value)) return value.rawJSON
  return typeof value === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)
    ? value.trim()
    : undefined
}
