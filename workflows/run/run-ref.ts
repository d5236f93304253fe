import type { RunRef } from '../../core/runs/known-run.ts'

/** How a step is given its run: it reads the rest from the run's own folder. */
export const refOf = ({ run, identity }: RunRef): RunRef => ({ run, identity })
