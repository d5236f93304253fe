import type { RunRef } from '../core/runs/known-run.ts'

/** What a step is told of its run: it reads the rest from the run's own folder. */
export const refOf = ({ run, identity }: RunRef): RunRef => ({ run, identity })
