import type { SharedStore } from './open.ts'

/**
 * What the workers of a state on PostgreSQL have published, as JSON. A worker alone keeps it in its data folder, whose
 * files a bucket cannot append to.
 */
export interface Publications {
  add(note: string): Promise<void>
  /** Oldest first. */
  all(): Promise<string[]>
}

export function createPublications({ db, now }: Pick<SharedStore, 'db' | 'now'>): Publications {
  return {
    add: async (note) => {
      await db.insertInto('publications').values({ note, notedAt: now() }).execute()
    },
    all: async () =>
      (await db.selectFrom('publications').select('note').orderBy('id').execute()).map(({ note }) => note),
  }
}
