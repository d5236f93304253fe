import { join, resolve } from 'node:path'
import { z } from 'zod'
import { toFileName } from '../storage/file-name.ts'
import { resolveInside } from '../storage/inside.ts'
import { InvalidInput } from './errors.ts'
import { type Identity, refuseOther } from './identity.ts'
import { identityInput, toProblems } from './inputs.ts'
import { access } from 'node:fs/promises'
import type { SharedFolder } from '../storage/cached.ts'
import { connector } from './view/shell.ts'

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

/**
 * Resolves a path inside the data folder: a run may read nothing else on the worker's machine. Several workers have the
 * file where they share theirs; a person may have put another one in its place.
 *
 * @throws {InvalidInput} the file is outside, missing or unreadable
 */
export async function insideFolder({
  dataDir,
  shared,
  path,
  command,
}: {
  dataDir: string
  shared: SharedFolder
  path: string
  /** The command that accepts files from elsewhere. */
  command: 'import' | 'fetch'
}): Promise<string> {
  const real = await resolveInside({ root: dataDir, path: resolve(dataDir, path) })
  if (real === undefined)
    throw new InvalidInput(
      `${path} lies outside the data folder. Put it there, or name it to \`${connector`${command}`}\`, which does so.`,
    )
  await shared.fetch(resolve(dataDir, path), { changes: true })
  await access(real).catch((cause: NodeJS.ErrnoException) => {
    const isMissing = cause.code === 'ENOENT' || cause.code === 'ENOTDIR'
    const why = isMissing
      ? `There is no file ${path} in the data folder.`
      : `${path} can't be read by the worker.`
    throw new InvalidInput(why, { cause })
  })
  return real
}
