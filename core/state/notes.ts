import { SupersededError } from './errors.ts'
import { type Store, transact } from './store.ts'

export interface Note {
  name: string
  body: unknown
}

/** Small JSON documents, each under a subject (such as a schedule or a run) and a name. */
export interface Notes {
  /** Adds notes whose names the subject does not have yet; of more than `keep` notes, the oldest are removed. */
  add(options: { subject: string; notes: readonly Note[]; keep?: number }): Promise<void>
  /**
   * Writes notes, all or none of them, and replaces those of the same names.
   *
   * @param options.attempt when Temporal scheduled the attempt that writes, by its clock; absent where nobody else writes
   * @throws {SupersededError} a later attempt has written one of them
   */
  put(options: {
    subject: string
    attempt?: number | undefined
    notes: Readonly<Record<string, unknown>>
  }): Promise<void>
  /** The notes of a subject, oldest first. */
  of(subject: string): Promise<Note[]>
}

export function createNotes({ db, now }: Pick<Store, 'db' | 'now'>): Notes {
  return {
    async add({ subject, notes, keep }) {
      const at = now()
      await transact(db, async (transaction) => {
        for (const { name, body } of notes)
          await transaction
            .insertInto('notes')
            .values({ subject, name, at, body: JSON.stringify(body) })
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
    async put({ subject, attempt, notes }) {
      const values = Object.entries(notes).map(([name, body]) => ({
        subject,
        name,
        at: attempt ?? 0,
        body: JSON.stringify(body),
      }))
      await transact(db, async (transaction) => {
        for (const value of values) {
          const written = await transaction
            .insertInto('notes')
            .values(value)
            .onConflict((conflict) => {
              const update = conflict.columns(['subject', 'name'])
              return attempt === undefined
                ? update.doUpdateSet({ body: value.body })
                : update.doUpdateSet({ at: attempt, body: value.body }).where('notes.at', '<=', attempt)
            })
            .returning('name')
            .executeTakeFirst()
          if (written === undefined) throw new SupersededError({ run: subject })
        }
      })
    },
    async of(subject) {
      const notes = db.selectFrom('notes').select(['name', 'body']).where('subject', '=', subject)
      const rows = await notes.orderBy('at').orderBy('name').execute()
      return rows.map(({ name, body }) => ({ name, body: JSON.parse(body) as unknown }))
    },
  }
}
