import type { RunRef } from '../../core/runs/known-run.ts'

/** The reference to a run that its steps receive; they read the rest from the run's own folder. */
export const refOf = ({ run, identity }: RunRef): RunRef => ({ run, identity })
