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

/** Each once, with the lists that it holds up: the steps of a run mostly have the same trouble. */
export function troublesStatus(troubles: readonly ShownTrouble[] = []): string[] {
  const lists = new Map<string, string[]>()
  for (const { resource, trouble } of troubles) {
    const text = describeTrouble(trouble)
    const others = lists.get(text) ?? []
    lists.set(text, resource === undefined || others.includes(resource) ? others : [...others, resource])
  }
  return [...lists].map(([text, of]) => (of.length === 0 ? text : `${of.join(', ')}: ${text}`))
}
