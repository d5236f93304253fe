import type { Command } from 'commander'
import { acquireLock } from '../../core/state/data-folder-lock.ts'
import { moveState } from '../../core/state/move-state.ts'
import { readStatePlace } from '../../worker/settings/settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

/** Moves the state of the data folder to PostgreSQL. */
export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const { folder, database } = readStatePlace({ env: process.env, cwd: process.cwd() })
    if (database === undefined)
      throw new RefusedError('CONNECTOR_STATE_URL is not set: it names the database to move the state to.', {
        hint: 'Set it to postgres://user:password@host/database, here and for the worker.',
      })
    const lock = acquireLock({ folder, role: 'move-state' })
    try {
      const { to, changes } = await moveState({ folder, database })
      const count = changes.toLocaleString('en-US')
      terminal.result({
        document: { to, changes },
        text: `Moved the state to ${to}: ${count} changes. Start the workers with CONNECTOR_STATE_URL and CONNECTOR_FILES_URL; state.db stays as it was and is no longer used.`,
      })
    } finally {
      lock.release()
    }
  })
  addExamples(command, 'run', {
    'move-state': 'with CONNECTOR_STATE_URL and CONNECTOR_FILES_URL set, no run open and no worker running',
  })
}
