import type { Store } from './store.ts'
import type { Mode } from './schema.ts'

/** Identifies a watermark. `filter` is a text that represents the filters, '' for none. */
export interface WatermarkKey {
  workspace: string
  mode: Mode
  resource: string
  filter: string
  destination: string
}

export interface Watermark {
  /** Everything up to this time has been published; milliseconds since 1970, by the service's clock. */
  at: number
  /** The proven run that moved it here. */
  run: string
  /** The claims of our own changes that were settled before the last read of the whole list: see `ListResource.unmoved`. */
  seenClaims: number
}

export interface StoredWatermark extends WatermarkKey, Watermark {}

export interface Watermarks {
  /** Every watermark, by resource and destination. */
  all(): Promise<StoredWatermark[]>
  /** Forgets one, by a person: the next incremental read is a whole one. */
  remove(key: WatermarkKey): Promise<void>
  get(key: WatermarkKey): Promise<Watermark | undefined>
  /**
   * Moves it forward, never back. Called after a proven run was published.
   * @param options.seenClaims after a read of the whole list; an incremental one leaves them as they are
   */
  move(options: {
    key: WatermarkKey
    to: number
    run: string
    seenClaims?: number | undefined
  }): Promise<void>
}

export function createWatermarks({ db, now }: Pick<Store, 'db' | 'now'>): Watermarks {
  return {
    all: () =>
      db
        .selectFrom('watermarks')
        .select([
          'workspace',
          'mode',
          'resource',
          'filter',
          'destination',
          'at',
          'run',
          'seenClaims as seenClaims',
        ])
        .orderBy('resource')
        .orderBy('destination')
        .orderBy('filter')
        .execute(),
    remove: async (key) => {
      await db
        .deleteFrom('watermarks')
        .where('workspace', '=', key.workspace)
        .where('mode', '=', key.mode)
        .where('resource', '=', key.resource)
        .where('filter', '=', key.filter)
        .where('destination', '=', key.destination)
        .execute()
    },
    get: (key) =>
      db
        .selectFrom('watermarks')
        .select(['at', 'run', 'seenClaims as seenClaims'])
        .where('workspace', '=', key.workspace)
        .where('mode', '=', key.mode)
        .where('resource', '=', key.resource)
        .where('filter', '=', key.filter)
        .where('destination', '=', key.destination)
        .executeTakeFirst(),
    move: async ({ key, to, run, seenClaims }) => {
      const { workspace, mode, resource, filter, destination } = key
      const moved = {
        run,
        movedAt: now(),
        ...(seenClaims !== undefined && { seenClaims: seenClaims }),
      }
      const values = { workspace, mode, resource, filter, destination, seenClaims: 0, at: to, ...moved }
      await db
        .insertInto('watermarks')
        .values(values)
        .onConflict((conflict) =>
          conflict
            .columns(['workspace', 'mode', 'resource', 'filter', 'destination'])
            .doUpdateSet((eb) => ({
              ...moved,
              at: eb.case().when('watermarks.at', '>', to).then(eb.ref('watermarks.at')).else(to).end(),
            }))
            // A list without changes moves no watermark, nor does one whose newest record is gone, and may have been read whole.
            .where(({ eb }) =>
              seenClaims === undefined
                ? eb('watermarks.at', '<', to)
                : eb.or([eb('watermarks.at', '<=', to), eb('watermarks.seenClaims', '<', seenClaims)]),
            ),
        )
        .execute()
    },
  }
}
