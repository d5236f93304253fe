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

interface Shown extends ProgressState {
  name: string
  unit: string
  startedAt: number
  /** Whether a log has its last state. */
  isLogged: boolean
}

/** In ms. A log gets a line often enough to show that the command is alive, seldom enough to be read. */
const everyMs = { bars: 200, lines: 5_000 }

/**
 * Displays progress: as bars that move on a terminal, as a line every few seconds if anything changed in a log, and not at
 * all (`none`) for programs that read the result.
 */
export function createBoard({
  stream,
  as,
}: {
  stream: NodeJS.WritableStream
  as: 'bars' | 'lines' | 'none'
}) {
  const running = new Set<Shown>()
  let timer: NodeJS.Timeout | undefined
  let drawn = 0
  /** Writes a text in the place of the bars, without wrapping it: a bar that is too wide would take two lines. */
  const draw = (text: string, bars: readonly string[]) => {
    const erase = drawn === 0 ? '' : `\x1b[${drawn}A\x1b[J`
    drawn = bars.length
    const shown = bars.length === 0 ? '' : `\x1b[?7l${bars.join('\n')}\n\x1b[?7h`
    if (erase + text + shown !== '') stream.write(erase + text + shown)
  }
  const write = (line: string) => draw(`${line}\n`, drawn === 0 ? [] : [...running].map(toBar))
  const report = (shown: Shown) => {
    if (!shown.isLogged) write(describe(shown))
    shown.isLogged = true
  }
  const tick = () => (as === 'bars' ? draw('', [...running].map(toBar)) : running.forEach(report))
  const close = () => {
    clearInterval(timer)
    timer = undefined
    running.clear()
    draw('', [])
  }
  return {
    start(what: { name: string; unit: string }): Progress {
      const shown: Shown = { ...what, done: 0, startedAt: performance.now(), isLogged: true }
      if (as !== 'none') {
        running.add(shown)
        timer ??= setInterval(tick, everyMs[as]).unref()
        if (as === 'bars') tick()
      }
      return {
        update: (state) =>
          void Object.assign(shown, { total: undefined, note: undefined, ...state, isLogged: false }),
        end() {
          if (!running.delete(shown)) return
          // Of a task, a log has the time that it took.
          if (as === 'lines') report({ ...shown, isLogged: shown.isLogged && shown.unit !== '' })
          if (running.size === 0) close()
        },
      }
    },
    /** Writes a printable line that is not progress, apart from it. */
    write,
    /** Ends all progress. */
    close,
  }
}

function describe({ name, unit, done, total, note, startedAt }: Shown): string {
  const howMany = total === undefined ? formatCount(done) : `${formatCount(done)} of ${formatCount(total)}`
  const words = [
    ...(unit === '' ? [] : [`${howMany} ${unit}`]),
    formatDuration(performance.now() - startedAt),
  ]
  return toPrintableLine(`${name}: ${[...words, ...(note ? [note] : [])].join(', ')}`)
}

const barLength = 20

function toBar(shown: Shown): string {
  const { done, total } = shown
  if (total === undefined || total === 0) return describe(shown)
  const full = Math.round(Math.min(1, done / total) * barLength)
  return `${'█'.repeat(full)}${'░'.repeat(barLength - full)} ${describe(shown)}`
}
