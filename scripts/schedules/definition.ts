import { z } from 'zod'
import { schedulableNames } from '../../core/schedules/inputs.ts'

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const duration = z
  .string({ error: 'not a duration; write 90s, 15m, 12h or 2d' })
  .regex(/^[1-9]\d{0,5}[smhd]$/, 'not a duration; write 90s, 15m, 12h or 2d')

export const toMs = (text: string): number => Number(text.slice(0, -1)) * (unitMs[text.at(-1) ?? ''] ?? 0)

/** Requires the exact IANA spelling, because Temporal accepts no other. */
const timezone = z.string().refine(isZone, {
  error: 'not a time zone; use a name like America/Santiago, America/Bogota, America/Mexico_City or UTC',
})

function isZone(name: string): boolean {
  if (!/^(UTC|[A-Z][A-Za-z_]+(\/[A-Z][A-Za-z0-9_+-]+)+)$/.test(name)) return false
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions()
    return timeZone.toLowerCase() !== name.toLowerCase() || timeZone === name
  } catch {
    return false
  }
}

const cron = z.union([z.string(), z.array(z.string()).min(1)], {
  error: 'not a cron expression; write it in quotes, as in "30 2 * * *"',
})

export const entrySchema = z.strictObject({
  workflow: z.enum(schedulableNames),
  /** The workflow's input, as in the Temporal UI. */
  input: z.record(z.string(), z.unknown()).default({}),
  /** A schedule has `cron` or `every`; neither if only a person starts it. */
  cron: cron.transform((text) => [text].flat()).optional(),
  every: duration.optional(),
  timezone: timezone.optional(),
  /** Delays each run by a random time of up to this, so that not all runs start at once. */
  jitter: duration.optional(),
  /** How late a run may still start after Temporal was down. */
  catchUp: duration.refine((text) => toMs(text) >= 10_000, 'too short; the minimum is 10s').default('12h'),
  pauseAfterFailures: z.int().min(1).max(10).default(3),
  provenWithin: duration.optional(),
  paused: z.boolean().default(false),
})

export const fileSchema = z.strictObject({
  timezone: timezone.optional(),
  schedules: z.record(
    z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'not a plain name; use letters, digits, - and _'),
    entrySchema,
    { error: ({ input }) => (input === undefined ? 'missing' : undefined) },
  ),
})
/** A schedule as written in the file. */
export type ScheduleEntry = z.input<typeof entrySchema>

/** A schedule with all defaults. Stored in the schedule's memo, so that the next `apply` can show what changes. */
export type Definition = z.output<typeof entrySchema> & { timezone: string }

export function toDefinition(entry: ScheduleEntry, zone: string): Definition {
  const { timezone = zone, ...more } = entrySchema.parse(entry)
  return { ...more, timezone }
}
