import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { type WorkflowHandle, WorkflowFailedError } from '@temporalio/client'
import { ApplicationFailure, WorkflowNotFoundError } from '@temporalio/common'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { createFolderMark } from '../../../core/state/claims-mark.ts'
import { OldLedgerError } from '../../../core/state/errors.ts'
import { openState } from '../../../core/state/open.ts'
import { repairState } from '../../../scripts/commands/state.ts'
import type * as workflows from '../../../workflows/index.ts'
import { type Blow, chooseBlow } from './faults.ts'
import { copyFolder, makeFolder, markFile, restoreMark, restoreRunFolders, restoreState } from './folders.ts'
import type { Random } from '../random.ts'
import type { Runner, Task } from './runner.ts'
import type { Tally } from '../tally.ts'
import { type Attempt, type ChaosWorker, openWorker } from './worker.ts'

/** A look waits so long, twice that before the second; nothing takes effect later. */
export const settleMs = 60

/** Two attempts, of which one was given up, with four changes each. */
const mostInFlight = 8

/** The events of an execution so far. */
interface Past {
  runId: string
  /** The events after which a reset can begin. */
  resetPoints: readonly EventId[]
  /** How many steps have ended. */
  steps: number
}

type EventId = NonNullable<NonNullable<History['events']>[number]['eventId']>
type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>

type Backup = { folder: string } & Past

/** One try of a step. */
interface Try {
  task: Task
  attempt: Attempt
  /** Temporal hears nothing more of it and gives the step to the next try. */
  lose: () => void
}

interface WorldOptions {
  runner: Runner
  sandbox: Sandbox
  random: Random
  tally: Tally
  readLagMs: number
}

type WorkflowName = 'importFile' | 'recoverSubscriptions' | 'exportData'
type ResultOf<Name extends WorkflowName> = Awaited<ReturnType<(typeof workflows)[Name]>>

let worlds = 0

/** A service, a worker and its files, and all that can happen to them and to the runs that they carry out. */
export class World {
  readonly sandbox: Sandbox
  readonly log: string[] = []
  readonly #options: WorldOptions
  readonly #random: Random
  readonly #tally: Tally
  readonly #name: string
  readonly #left: ChaosWorker[] = []
  readonly #folders: string[] = []
  readonly #tries = new Set<Try>()
  readonly #errors: unknown[] = []
  #backups: Backup[] = []
  #worker: ChaosWorker
  /** Until a worker that was killed has its successor. */
  #ready: Promise<void> = Promise.resolve()
  #workflowId = ''
  /** Executions that a restored Temporal no longer has. */
  readonly #forgottenRuns = new Set<string>()
  #resets = 0
  #isAimed = false
  /** How many more blows there are. */
  blows = 0
  /** How long a segment takes. */
  seconds = 1
  /** How often all that knew of sends was put back together. */
  forgotten = 0

  private constructor(options: WorldOptions & { history: string; worker: ChaosWorker }) {
    this.#options = options
    this.sandbox = options.sandbox
    this.#random = options.random
    this.#tally = options.tally
    this.#name = options.history
    this.#worker = options.worker
    this.#folders.push(options.worker.dataDir)
    options.runner.join(options.history, (task) => this.#carryOut(task))
  }

  static async open(options: WorldOptions) {
    worlds += 1
    const history = `history${worlds}`
    const { client, rangeQueue } = options.runner
    const worker = await openWorker({ ...options, dataDir: makeFolder(), settleMs, client, rangeQueue })
    return new World({ ...options, history, worker })
  }

  worker = () => this.#worker

  /**
   * Starts a workflow and waits for its end.
   * @param attend - what a person does every now and then until it has ended
   * @throws {WorkflowFailedError}
   */
  async play<Name extends WorkflowName>(
    type: Name,
    name: string,
    input: object,
    attend?: (run: WorkflowHandle) => Promise<void>,
  ): Promise<ResultOf<Name>> {
    const { client, taskQueue } = this.#options.runner
    this.#workflowId = `${this.#name}-${name}`
    await client.workflow.start(type, { workflowId: this.#workflowId, taskQueue, args: [input] })
    const ended = new AbortController()
    const attended = attend && attendUntil(ended.signal, () => attend(this.handle()))
    try {
      return (await this.#result()) as ResultOf<Name>
    } finally {
      ended.abort()
      await attended
    }
  }

  async #result(): Promise<unknown> {
    for (;;) {
      const resets = this.#resets
      try {
        return await this.handle().result()
      } catch (error) {
        // The execution that a reset replaced is terminated.
        if (!(error instanceof WorkflowFailedError) || resets === this.#resets) throw error
      }
    }
  }

  /** The run, as the person who started it sees it. */
  handle = () => this.#options.runner.client.workflow.getHandle(this.#workflowId)

  async #carryOut(task: Task): Promise<unknown> {
    await this.#ready
    // The worker that was to follow could not begin: the run would wait and never end. `settle` says why.
    if (this.#errors.length > 0) throw ApplicationFailure.nonRetryable('there is no worker')
    const { info, cancelled } = task
    if (this.#forgottenRuns.has(info.workflowExecution?.runId ?? '')) throw soon(new Error('forgotten'))
    const lost = Promise.withResolvers<never>()
    let isLost = false
    const attempt = this.#start(task, () => isLost)
    const one: Try = {
      task,
      attempt,
      lose() {
        isLost = true
        lost.reject(new Error('the worker is lost'))
      },
    }
    this.#tries.add(one)
    cancelled.addEventListener('abort', attempt.cancel)
    if (cancelled.aborted) attempt.cancel()
    const ended = Promise.race([attempt.result, lost.promise])
    try {
      // Temporal hears of a step's end only after what struck it: a reset would start a run again that has ended.
      await this.#aimAt(one, ended)
      return await (isLost ? lost.promise : ended)
    } catch (error) {
      throw cancelled.aborted ? error : soon(error)
    } finally {
      this.#tries.delete(one)
    }
  }

  #start({ name, input, info, heartbeat }: Task, isLost: () => boolean): Attempt {
    const hasSeconds = 'seconds' in (input as object)
    return this.#worker.start({
      name,
      input: hasSeconds ? { ...(input as object), seconds: this.seconds } : input,
      info,
      onHeartbeat: (details) => {
        if (!isLost()) heartbeat(details)
      },
    })
  }

  /** Strikes a try after so many pieces of traffic and so many turns of the event loop, unless it ends before. */
  async #aimAt(one: Try, ended: Promise<unknown>): Promise<void> {
    if (this.blows === 0 || this.#isAimed || this.#random.happens(0.15)) return
    const chosen = chooseBlow(this.#random)
    // Nothing interrupts a report.
    const isInterruptible = !one.task.name.startsWith('close')
    const blow = !isInterruptible && (chosen === 'pause' || chosen === 'stop') ? 'kill' : chosen
    const traffic = this.#random.below(this.#random.pick([3, 10, 40]))
    const turns = this.#random.below(12)
    const state = { isOver: false }
    const over = ended.then(
      () => (state.isOver = true),
      () => (state.isOver = true),
    )
    this.#isAimed = true
    const { gate } = this.#worker
    try {
      let passed = 0
      const due = new Promise<void>((resolve) => {
        gate.onTraffic(() => {
          passed += 1
          if (passed >= traffic) resolve()
        })
        if (traffic === 0) resolve()
      })
      await Promise.race([over, due])
      for (let turned = 0; turned < turns && !state.isOver; turned += 1) await turn()
      gate.onTraffic(() => {})
      if (!state.isOver) await this.#strike(blow, one)
    } catch (error) {
      // A run that has ended meanwhile hears nothing.
      if (!(error instanceof WorkflowNotFoundError)) this.#errors.push(error)
    } finally {
      this.#isAimed = false
    }
  }

  async #strike(chosen: Blow, one: Try): Promise<void> {
    const needsBackup = chosen.includes('restored')
    const backup = needsBackup ? await this.#backupFor(chosen) : undefined
    const blow = needsBackup && backup === undefined ? 'backup' : chosen
    if (blow !== 'backup') this.blows -= 1
    this.#tally.add(blow)
    this.log.push(`${blow} in ${one.task.name}`)
    await this.#blow({ blow, one, backup })
  }

  async #blow({ blow, one, backup }: { blow: Blow; one: Try; backup: Backup | undefined }): Promise<void> {
    const { runId = '' } = one.task.info.workflowExecution ?? {}
    const handle = this.#options.runner.client.workflow.getHandle(this.#workflowId)
    switch (blow) {
      case 'backup': {
        const folder = this.#copy()
        this.#backups.push({ folder, ...(await this.#past()) })
        return
      }
      case 'freeze':
        this.#freeze(one)
        return
      case 'pause':
        await handle.signal('pause')
        await wait(this.#random.below(300))
        await handle.signal('unpause')
        return
      case 'stop':
        await handle.signal('stop')
        return
      case 'terminate':
        await handle.terminate('somebody pressed Terminate')
        return
      case 'reset': {
        const { resetPoints } = await this.#past()
        if (resetPoints.length > 0) await this.#reset(this.#random.pick(resetPoints))
        return
      }
      case 'lock lost': {
        const folder = this.#copy()
        this.#worker.loseLock()
        this.#replaceBy(() => Promise.resolve(folder))
        return
      }
      default: {
        const folder = this.#kill()
        if (backup !== undefined && /(?<!but )Temporal/.test(blow)) this.#forgottenRuns.add(runId)
        this.#replaceBy(async () => {
          if (backup !== undefined) await this.#restore({ blow, folder, backup: backup.folder })
          if (blow === 'mark lost') rmSync(join(folder, markFile), { force: true })
          if (backup !== undefined && this.#forgottenRuns.has(runId))
            await this.#reset(backup.resetPoints.at(-1))
          return folder
        })
      }
    }
  }

  async #past(): Promise<Past> {
    const { runId } = await this.handle().describe()
    const { events } = await this.#options.runner.client.workflow
      .getHandle(this.#workflowId, runId)
      .fetchHistory()
    if (!events) throw new Error(`${runId} has no history`)
    // A reset does not give the new execution the children of the old one.
    const child = events.findIndex((event) => event.startChildWorkflowExecutionInitiatedEventAttributes)
    const resettable = child < 0 ? events : events.slice(0, child)
    return {
      runId,
      resetPoints: resettable.flatMap(({ eventId, workflowTaskCompletedEventAttributes: task }) =>
        task && eventId ? [eventId] : [],
      ),
      steps: events.filter((event) => event.activityTaskCompletedEventAttributes).length,
    }
  }

  async #reset(to: EventId | undefined): Promise<void> {
    if (to === undefined) return
    const { workflowService } = this.#options.runner.client
    const { runId } = await this.handle().describe()
    this.#resets += 1
    await workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: this.#workflowId, runId },
      workflowTaskFinishEventId: to,
      reason: 'chaos',
      requestId: `${runId}-${this.#resets}`,
    })
  }

  /**
   * Files beside the runs and Temporal's history are put back only to a moment at which this run had staged its
   * changes: of a run that all of these have forgotten nobody can know.
   */
  async #backupFor(blow: Blow): Promise<Backup | undefined> {
    if (this.#backups.length === 0) return undefined
    if (blow === 'state.db restored') return this.#random.pick(this.#backups)
    const { runId } = await this.handle().describe()
    const fitting = this.#backups.filter((one) => one.runId === runId && one.steps >= 2)
    return fitting.length === 0 ? undefined : this.#random.pick(fitting)
  }

  /** The worker hears nothing for a while; Temporal gives the step up, and the next try begins in the same process. */
  #freeze({ lose, attempt }: Try): void {
    const { gate } = this.#worker
    gate.hold()
    setTimeout(gate.release, this.#random.below(30))
    if (this.#random.happens(0.5)) setTimeout(attempt.cancel, this.#random.below(40))
    lose()
  }

  #copy(): string {
    const folder = copyFolder(this.#worker.dataDir)
    this.#folders.push(folder)
    return folder
  }

  /** Returns the folder as the kill left it. */
  #kill(): string {
    this.#worker.gate.cut()
    const folder = this.#copy()
    for (const { attempt } of this.#tries) attempt.cancel()
    return folder
  }

  /** As the runbook says. */
  async #restore({ blow, folder, backup }: { blow: Blow; folder: string; backup: string }) {
    const everything = blow.startsWith('everything')
    if (everything) this.forgotten += 1
    if (everything || blow === 'run files restored') restoreRunFolders({ backup, folder })
    if (blow === 'run files restored') return
    // A claim is in the mark before its request leaves: a kill in between leaves as many outside as were in flight.
    const marked = await createFolderMark(folder).read()
    if (marked < (await claimsIn(folder)) - mostInFlight)
      throw new Error(`the mark beside the ledger is ${marked}, but it has ${await claimsIn(folder)} claims`)
    restoreState({ backup, folder })
    if (everything) restoreMark({ backup, folder })
    else await this.#expectRefusal({ folder, isOld: (await claimsIn(folder)) < marked })
    await repairState({ place: { folder } })
  }

  /** A worker refuses a ledger that lacks claims, and no other. */
  async #expectRefusal({ folder, isOld }: { folder: string; isOld: boolean }): Promise<void> {
    const state = await openState({ folder }).catch((error: unknown) => {
      if (error instanceof OldLedgerError) return undefined
      throw error
    })
    await state?.close()
    if ((state === undefined) !== isOld)
      throw new Error(
        `a ledger that ${isOld ? 'lacks' : 'has all'} claims was ${isOld ? 'taken' : 'refused'}`,
      )
    this.#tally.add(isOld ? 'old ledger refused' : 'restored ledger that lacks no claim')
  }

  /** Temporal hears nothing more of the worker, and the next one takes over what `prepare` leaves. */
  #replaceBy(prepare: () => Promise<string>): void {
    this.#left.push(this.#worker)
    const { client, rangeQueue } = this.#options.runner
    this.#ready = (async () => {
      const dataDir = await prepare()
      this.#worker = await openWorker({ ...this.#options, dataDir, settleMs, client, rangeQueue })
    })().catch((error: unknown) => void this.#errors.push(error))
    for (const one of this.#tries) one.lose()
  }

  /** Waits until nothing that any worker began is under way, and lets what is late take its effect. */
  async settle(): Promise<void> {
    await this.#ready
    for (const worker of this.#left.splice(0)) await worker.close()
    this.sandbox.control.landLateEffects()
    const [error] = this.#errors
    if (error !== undefined) throw error
  }

  async close(): Promise<void> {
    await this.settle()
    this.#options.runner.leave(this.#name)
    await this.#worker.close()
    await this.sandbox.close()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }
}

/** How many claims the ledger of a folder knows. */
async function claimsIn(folder: string): Promise<number> {
  const state = await openState({ folder, isRepair: true })
  try {
    return await state.ledger.claimed()
  } finally {
    await state.close()
  }
}

async function attendUntil(ended: AbortSignal, attend: () => Promise<void>): Promise<void> {
  while (!ended.aborted) {
    // The run may have been terminated, or may not ask any more.
    await attend().catch(() => undefined)
    await wait(100)
  }
}

/** What Temporal tries again, it tries at once: an hour of chaos has better things to do than to wait. */
function soon(error: unknown): unknown {
  if (error instanceof ApplicationFailure && error.nonRetryable === true) return error
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
  const type = error instanceof ApplicationFailure ? error.type : name
  return ApplicationFailure.create({ message, type: type ?? name, nextRetryDelay: '20ms' })
}
