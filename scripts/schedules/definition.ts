import { z } from 'zod'
import { schedulableNames, type SchedulableName } from '../../core/schedules/inputs.ts'

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const notDuration = 'is no length of time; write it as 90s, 15m, 12h or 2d'
const duration = z.string({ error: notDuration }).regex(/^[1-9]\d{0,5}[smhd]$/, notDuration)

export const toMs = (text: string): number => Number(text.slice(0, -1)) * (unitMs[text.at(-1) ?? ''] ?? 0)

/** Names as the IANA has them, in its own letters: Temporal knows no others. */
const timezone = z.string().refine(isZone, {
  error: 'is no time zone; name one like America/Santiago, America/Bogota, America/Mexico_City or UTC',
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
  error: 'is no cron expression; write it in quotes, as in "30 2 * * *"',
})

export const entrySchema = z.strictObject({
  workflow: z.enum(schedulableNames),
  /** As the workflow takes it from the Temporal UI. */
  input: z.record(z.string(), z.unknown()).optional(),
  cron: cron.optional(),
  every: duration.optional(),
  timezone: timezone.optional(),
  /** Each run begins up to so much later, so that not everything begins at once. */
  jitter: duration.optional(),
  /** How late a run may still begin, after Temporal was away. */
  catchUp: duration.refine((text) => toMs(text) >= 10_000, 'is under 10s, the least there is').optional(),
  pauseAfterFailures: z.int().min(1).max(10).optional(),
  provenWithin: duration.optional(),
  paused: z.boolean().optional(),
})

export const fileSchema = z.strictObject({
  timezone: timezone.optional(),
  schedules: z.record(
    z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'is no plain name; use letters, digits, - and _'),
    entrySchema,
  ),
})
export type ScheduleEntry = z.output<typeof entrySchema>

export const defaults = { catchUp: '12h', pauseAfterFailures: 3 } as const

/** A schedule as the file wants it, with every default. Also what is kept with it, to show what will change. */
export interface Definition {
  workflow: SchedulableName
  input: Record<string, unknown>
  /** Of each schedule either this or `every`; neither where only a person starts it. */
  cron?: string[]
  every?: string
  timezone: string
  jitter?: string
  catchUp: string
  pauseAfterFailures: number
  provenWithin?: string
  paused: boolean
}

export function toDefinition(entry: ScheduleEntry, zone: string): Definition {
  const { workflow, input = {}, cron, every, timezone = zone, jitter, provenWithin, paused = false } = entry
  const { catchUp = defaults.catchUp, pauseAfterFailures = defaults.pauseAfterFailures } = entry
  return {
    workflow,
    input,
    ...(cron !== undefined && { cron: [cron].flat() }),
    ...(every !== undefined && { every }),
    timezone,
    ...(jitter !== undefined && { jitter }),
    catchUp,
    pauseAfterFailures,
    ...(provenWithin !== undefined && { provenWithin }),
    paused,
  }
}
