import { join } from 'node:path'
import { z } from 'zod'
import { toFileName } from '../storage/file-name.ts'
import { resolveInside } from '../storage/inside.ts'
import { InvalidInput } from './errors.ts'
import { type Identity, refuseOther } from './identity.ts'
import { identityInput } from './identity-input.ts'
import { toProblems } from './parse-input.ts'

/** The run that a step belongs to. The step reads everything else from the run's own folder. */
export interface RunRef {
  run: string
  /** The workspace the run acts on: a worker for another one, or with another data folder, refuses it. */
  identity: Identity
}

const runRef = z.object({ run: z.string().min(1).max(2_000), identity: identityInput.unwrap() })

/**
 * The plan of the run that a step's input names. Anyone who reaches Temporal can call any step with any input, so no
 * path of an input is ever followed: the name leads to a folder of the data folder, and the plan there is authoritative.
 *
 * @throws {InvalidInput} the input names no run, or one that is not in the data folder
 * @throws {WrongWorker} the run belongs to another workspace, address, mode or state store
 */
export async function knownRun<Plan>(options: {
  input: unknown
  worker: Identity
  find: (run: string) => Promise<Plan | undefined>
}): Promise<Plan> {
  const { run, identity } = parseStepInput(runRef, options.input)
  refuseOther({ run: identity, worker: options.worker })
  const plan = await options.find(run)
  if (plan !== undefined) return plan
  throw new InvalidInput(
    `There is no run ${JSON.stringify(run)} in the data folder of this worker: it was removed, or never started.`,
  )
}

/** The folder of a run, which may not exist yet; undefined if a link leads out of its parent folder. */
export async function runFolder(place: {
  dataDir: string
  room: 'imports' | 'recoveries' | 'parts'
  run: string
}): Promise<string | undefined> {
  const root = join(place.dataDir, place.room)
  const path = join(root, toFileName(place.run))
  return (await resolveInside({ root, path })) === undefined ? undefined : path
}

/** @throws {InvalidInput} all problems in one sentence */
export function parseStepInput<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw new InvalidInput(`A step takes the name and the identity of its run: ${toProblems(parsed.error)}.`)
}
