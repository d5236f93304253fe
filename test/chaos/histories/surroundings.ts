import { globSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import { changeRunFiles } from '../../../core/runs/run-files.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { fixLedger } from '../../../scripts/commands/restored.ts'
import { type Blow, chooseBlow } from './faults.ts'
import { copyFolder, makeFolder, restoreRunFolders, restoreState } from './folders.ts'
import type { Random } from '../random.ts'
import type { Tally } from '../tally.ts'
import { Run, type Struck, type Surroundings } from './run.ts'
import { type Attempt, type ChaosWorker, type Execution, openWorker } from './worker.ts'

/** A look waits so long, twice that before the second; nothing takes effect later. */
export const settleMs = 60

interface Backup {
  folder: string
  runId: string
  /** How many events the run's history had. */
  events: number
  /** How many steps had ended. A step that was interrupted leaves an event, too. */
  steps: number
}

interface WorldOptions {
  sandbox: Sandbox
  random: Random
  tally: Tally
  readLagMs: number
}

/** A service, a worker, its files and what Temporal knows, and all that can happen to them. */
export class World implements Surroundings {
  readonly sandbox: Sandbox
  readonly log: string[] = []
  readonly #random: Random
  readonly #tally: Tally
  readonly #readLagMs: number
  readonly #executions: Executions
  readonly #left: ChaosWorker[] = []
  readonly #folders: string[] = []
  #backups: Backup[] = []
  #worker: ChaosWorker
  #run: Run | undefined
  /** How many more blows there are. */
  blows = 0
  /** How often all that knew of sends was put back together. */
  forgotten = 0

  private constructor(options: WorldOptions & { executions: Executions; worker: ChaosWorker }) {
    this.sandbox = options.sandbox
    this.#random = options.random
    this.#tally = options.tally
    this.#readLagMs = options.readLagMs
    this.#executions = options.executions
    this.#worker = options.worker
    this.#folders.push(options.worker.dataDir)
  }

  static async open(options: WorldOptions) {
    const executions = new Executions()
    const dataDir = makeFolder()
    const worker = await openWorker({ ...options, dataDir, settleMs, client: executions.client })
    return new World({ ...options, executions, worker })
  }

  worker = () => this.#worker

  /** An execution of a workflow, from its start to its end. */
  async play<T>(workflowId: string, workflow: (run: Run) => Promise<T>): Promise<T> {
    const run = new Run({ execution: { workflowId, runId: this.#executions.begin() }, around: this })
    this.#run = run
    this.#backups = this.#backups.map((backup) => ({ ...backup, runId: '' }))
    try {
      return await run.play(workflow)
    } finally {
      this.#executions.end(run.execution)
      this.#run = undefined
    }
  }

  next({ isInterruptible }: { isInterruptible: boolean }) {
    if (this.blows === 0 || this.#random.happens(0.15)) return undefined
    const chosen = chooseBlow(this.#random)
    const blow = !isInterruptible && (chosen === 'pause' || chosen === 'stop') ? 'kill' : chosen
    return {
      blow,
      traffic: this.#random.below(this.#random.pick([3, 10, 40])),
      turns: this.#random.below(12),
    }
  }

  async strike(blow: Blow, struck: { attempt: Attempt; events: number; steps: number }): Promise<Struck> {
    const needsBackup = blow.includes('restored')
    const backup = needsBackup ? this.#backupFor(blow) : undefined
    if (blow === 'backup' || (needsBackup && backup === undefined)) return this.#backUp(struck)
    this.blows -= 1
    this.#tally.add(blow)
    this.log.push(`${blow} after ${struck.events} events`)
    return await this.#blow({ blow, ...struck, backup })
  }

  #backUp({ events, steps }: Omit<Backup, 'folder' | 'runId'>): Struck {
    const folder = copyFolder(this.#worker.dataDir)
    this.#folders.push(folder)
    this.#backups.push({ folder, runId: this.#run?.execution.runId ?? '', events, steps })
    this.#tally.add('backup')
    this.log.push(`backup after ${events} events`)
    return 'unhurt'
  }

  /**
   * Files beside the runs and Temporal's database are put back only to a moment at which this run had staged its
   * changes: of a run that all of these have forgotten nobody can know.
   */
  #backupFor(blow: Blow): Backup | undefined {
    if (blow === 'state.db restored') return this.#pickBackup(this.#backups)
    const runId = this.#run?.execution.runId
    return this.#pickBackup(this.#backups.filter((one) => one.runId === runId && one.steps >= 2))
  }

  #pickBackup(backups: readonly Backup[]): Backup | undefined {
    return backups.length === 0 ? undefined : this.#random.pick(backups)
  }

  async #blow({
    blow,
    attempt,
    events,
    backup,
  }: {
    blow: Blow
    attempt: Attempt
    events: number
    backup: Backup | undefined
  }): Promise<Struck> {
    switch (blow) {
      case 'freeze':
        this.#freeze(attempt)
        return 'retried'
      case 'pause':
      case 'stop':
        attempt.cancel()
        await attempt.result.catch(() => undefined)
        return blow === 'pause' ? 'paused' : 'stopped'
      case 'terminate':
        setTimeout(attempt.cancel, this.#random.below(20))
        return 'terminated'
      case 'reset':
        setTimeout(attempt.cancel, this.#random.below(20))
        this.#reset()
        return { rewoundTo: this.#random.below(events + 1) }
      case 'lock lost': {
        const folder = this.#copy()
        this.#worker.loseLock()
        await this.#replace(folder)
        return 'retried'
      }
      default: {
        const folder = this.#kill(attempt)
        if (backup !== undefined) await this.#restore({ blow, folder, backup: backup.folder })
        if (blow === 'claims.log lost') await this.#loseJournals(folder)
        await this.#replace(folder)
        return backup !== undefined && /(?<!but )Temporal/.test(blow)
          ? { rewoundTo: backup.events }
          : 'retried'
      }
    }
  }

  /** The worker hears nothing for a while; Temporal gives the step up, and the next try begins in the same process. */
  #freeze(attempt: Attempt): void {
    const { gate } = this.#worker
    gate.hold()
    setTimeout(gate.release, this.#random.below(30))
    if (this.#random.happens(0.5)) setTimeout(attempt.cancel, this.#random.below(40))
  }

  #reset(): void {
    const run = this.#run
    if (run === undefined) return
    const { workflowId, runId } = run.execution
    this.#executions.end(run.execution)
    run.execution = { workflowId, runId: this.#executions.begin(runId) }
    this.#backups = this.#backups.map((one) => (one.runId === runId ? { ...one, runId: '' } : one))
  }

  #copy(): string {
    const folder = copyFolder(this.#worker.dataDir)
    this.#folders.push(folder)
    return folder
  }

  /** Returns the folder as the kill left it. */
  #kill(attempt: Attempt): string {
    this.#worker.gate.cut()
    const folder = this.#copy()
    attempt.cancel()
    return folder
  }

  /** As the runbook says. */
  async #restore({ blow, folder, backup }: { blow: Blow; folder: string; backup: string }) {
    const everything = blow.startsWith('everything')
    if (everything) this.forgotten += 1
    if (blow !== 'run files restored') restoreState({ backup, folder })
    if (everything || blow === 'run files restored') restoreRunFolders({ backup, folder })
    await fixLedger({ place: { folder }, everything })
  }

  async #loseJournals(folder: string): Promise<void> {
    for (const path of globSync(join(folder, '*', '*', changeRunFiles.claims))) rmSync(path)
    await fixLedger({ place: { folder }, everything: false })
  }

  async #replace(folder: string): Promise<void> {
    this.#left.push(this.#worker)
    const { client } = this.#executions
    const { sandbox } = this
    this.#worker = await openWorker({
      sandbox,
      dataDir: folder,
      settleMs,
      readLagMs: this.#readLagMs,
      client,
    })
  }

  /** Waits until nothing that any worker began is under way, and lets what is late take its effect. */
  async settle(): Promise<void> {
    for (const worker of this.#left.splice(0)) await worker.close()
    this.sandbox.control.landLateEffects()
  }

  async close(): Promise<void> {
    await this.settle()
    await this.#worker.close()
    await this.sandbox.close()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }
}

/** Temporal as steps see it: whether another run has ended. */
class Executions {
  readonly #known = new Map<string, { isOpen: boolean; firstRunId: string }>()

  /** Gives its run id. `of`: the execution that a reset made it of. */
  begin(of?: string): string {
    const runId = `execution-${this.#known.size + 1}`
    const firstRunId = (of === undefined ? undefined : this.#known.get(of)?.firstRunId) ?? runId
    this.#known.set(runId, { isOpen: true, firstRunId })
    return runId
  }

  end({ runId }: Execution): void {
    const known = this.#known.get(runId)
    if (known !== undefined) known.isOpen = false
  }

  get client(): Client {
    const getHandle = (workflowId: string, runId = '') => ({
      describe: async () => {
        const found = this.#known.get(runId)
        if (found === undefined) throw new WorkflowNotFoundError('no such run', workflowId, runId)
        const { isOpen, firstRunId } = found
        return {
          status: { name: isOpen ? 'RUNNING' : 'TERMINATED' },
          raw: { workflowExecutionInfo: { firstRunId } },
        }
      },
    })
    const withAbortSignal = (_: AbortSignal, work: () => unknown) => work()
    return { workflow: { getHandle }, withAbortSignal } as unknown as Client
  }
}
