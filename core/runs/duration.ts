/** The milliseconds of a duration of an input. */
export const toMs = (seconds: number): number => Math.round(seconds * 1_000)

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/**
 * Parses a duration to milliseconds: `90s`, `15m`, `2h`, `3d`; a bare number is seconds. Undefined if it is
 * not a duration.
 */
export function parseDuration(text: string): number | undefined {
  const [, number, unit = 's'] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(text.trim()) ?? []
  return number === undefined ? undefined : Number(number) * unitMs[unit as keyof typeof unitMs]
}
