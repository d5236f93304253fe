import type { StatePlace } from '../../../../core/state/open.ts'

/** A place for a new state, for one test. */
export type NewPlace = () => Promise<StatePlace>
