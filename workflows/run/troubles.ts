import { setDefaultSignalHandler } from '@temporalio/workflow'
import type { TroubleNote } from '../../activities/tell-trouble.ts'
import { describeTrouble, isTrouble, type Trouble } from '../../core/runs/view/trouble.ts'

/** What holds up a step of a run, as its query `status` returns it. */
export interface ShownTrouble {
  resource?: string
  trouble: Trouble
}

/** Shows what holds up the steps of a run while they are under way: a workflow does not see their heartbeats. */
export function showTroubles(progress: { troubles?: ShownTrouble[] }, show: () => void): void {
  const steps = new Map<string, ShownTrouble>()
  // Not a handler of its own: the Temporal UI would offer that signal to people.
  setDefaultSignalHandler((name, note) => {
    if (name !== 'trouble' || typeof note !== 'object' || note === null) return
    const { step, resource, trouble } = note as TroubleNote
    const key = JSON.stringify([resource, step])
    if (isTrouble(trouble)) steps.set(key, { ...(typeof resource === 'string' && { resource }), trouble })
    else steps.delete(key)
    progress.troubles = [...steps.values()]
    show()
  })
}

/** Each once: the ranges of one list mostly have the same. */
export const troublesStatus = (troubles: readonly ShownTrouble[] = []): string[] => [
  ...new Set(troubles.map(({ trouble }) => describeTrouble(trouble))),
]
