import { transact } from './transact.ts'
import type { Store } from './store.ts'

export interface Note {
  name: string
  body: unknown
}

/** Small JSON documents, each under a subject (such as a schedule) and a name. */
export interface Notes {
  /** Adds a note unless the subject has one of that name; of more than `keep` notes, the oldest are removed. */
  add(note: Note & { subject: string; keep?: number }): Promise<void>
  /** The notes of a subject, oldest first. */
  of(subject: string): Promise<Note[]>
}

export function createNotes({ db, now }: Pick<Store, 'db' | 'now'>): Notes {
  return {
    async add({ subject, name, body, keep }) {
      await transact(db, async (transaction) => {
        await transaction
          .insertInto('notes')
          .values({ subject, name, at: now(), body: JSON.stringify(body) })
          .onConflict((conflict) => conflict.doNothing())
          .execute()
        if (keep === undefined) return
        const newest = transaction
          .selectFrom('notes')
          .select('name')
          .where('subject', '=', subject)
          .orderBy('at', 'desc')
          .orderBy('name', 'desc')
          .limit(keep)
        await transaction
          .deleteFrom('notes')
          .where('subject', '=', subject)
          .where('name', 'not in', newest)
          .execute()
      })
    },
    async of(subject) {
      const notes = db.selectFrom('notes').select(['name', 'body']).where('subject', '=', subject)
      const rows = await notes.orderBy('at').orderBy('name').execute()
      return rows.map(({ name, body }) => ({ name, body: JSON.parse(body) as unknown }))
    },
  }
}
