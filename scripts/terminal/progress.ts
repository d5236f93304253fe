import type * as CliProgress from 'cli-progress'
import { createRequire } from 'node:module'
import { formatCount, formatDuration, toPrintableLine } from '../../core/runs/view/format.ts'

interface ProgressState {
  done: number
  total?: number | undefined
  /** Shown after the numbers. */
  note?: string | undefined
}

/** The progress of one item. */
export interface Progress {
  update(state: ProgressState): void
  /** Ends the progress. A bar vanishes with the last one: what it said is in the result. */
  end(): void
}

/** Displays progress. */
interface ProgressBoard {
  start(what: { name: string; unit: string }): Progress
  /** Writes a printable line that is not progress, apart from it. */
  write(line: string): void
  /** Ends all progress. */
  close(): void
}

interface Shown extends ProgressState {
  name: string
  unit: string
  startedAt: number
}

function describe(shown: Shown): string {
  const { name, unit, done, total, note, startedAt } = shown
  const howMany = total === undefined ? formatCount(done) : `${formatCount(done)} of ${formatCount(total)}`
  const words = [
    ...(unit === '' ? [] : [`${howMany} ${unit}`]),
    formatDuration(performance.now() - startedAt),
  ]
  return toPrintableLine(`${name}: ${[...words, ...(note ? [note] : [])].join(', ')}`)
}

/** Loaded late: most commands show no bars. */
const loadBars = () => createRequire(import.meta.url)('cli-progress') as typeof CliProgress

/** Shows progress bars, for a person at a terminal. */
export function createBars(stream: NodeJS.WritableStream): ProgressBoard {
  let bars: CliProgress.MultiBar | undefined
  const running = new Set<CliProgress.SingleBar>()
  const close = () => {
    bars?.stop()
    bars = undefined
    running.clear()
  }
  return {
    start(what) {
      bars ??= new (loadBars().MultiBar)({
        stream,
        format: (options, params, payload) =>
          barLine(payload as Shown, params.progress, options.barsize ?? 20),
        barsize: 20,
        fps: 5,
        forceRedraw: true,
        clearOnComplete: true,
        // Prevents the library from handling Ctrl-C itself.
        gracefulExit: false,
      })
      const shown: Shown = { ...what, done: 0, startedAt: performance.now() }
      const bar = bars.create(1, 0, shown)
      running.add(bar)
      return {
        update(state) {
          bar.setTotal(state.total ?? 0)
          bar.update(state.done, { ...shown, ...state })
        },
        end() {
          bar.stop()
          running.delete(bar)
          if (running.size === 0) close()
        },
      }
    },
    write(line) {
      if (bars === undefined) stream.write(`${line}\n`)
      else bars.log(`${line}\n`)
    },
    close,
  }
}

function barLine(shown: Shown, progress: number, size: number): string {
  if (shown.total === undefined || shown.total === 0) return describe(shown)
  const full = Math.round(Math.min(1, progress) * size)
  return `${'█'.repeat(full)}${'░'.repeat(size - full)} ${describe(shown)}`
}

/** Writes a line every few seconds if anything changed, for a log. */
export function createLines({
  stream,
  everyMs,
}: {
  stream: NodeJS.WritableStream
  everyMs: number
}): ProgressBoard {
  const running = new Set<() => void>()
  const timer = setInterval(() => running.forEach((report) => report()), everyMs).unref()
  const write = (line: string) => void stream.write(`${line}\n`)
  return {
    start(what) {
      let shown: Shown = { ...what, done: 0, startedAt: performance.now() }
      let reported: ProgressState | undefined = shown
      const report = () => {
        if (reported !== shown) write(describe(shown))
        reported = shown
      }
      running.add(report)
      return {
        update: (state) => (shown = { ...shown, ...state }),
        end() {
          if (!running.delete(report)) return
          if (what.unit === '') write(describe(shown))
          else report()
        },
      }
    },
    write,
    close: () => clearInterval(timer),
  }
}

/** Shows no progress, for programs that read the result. */
export function createSilence(stream: NodeJS.WritableStream): ProgressBoard {
  return {
    start: () => ({ update: () => undefined, end: () => undefined }),
    write: (line) => void stream.write(`${line}\n`),
    close: () => undefined,
  }
}
