import { html, type Html } from './html-template.ts'
import { formatCount, formatTime, formatTook } from './format.ts'
import type { Point } from './throughput.ts'

const width = 600
const height = 140

/**
 * What was done over time, as a line. It stretches with the page; all words stand outside it, so that they stay
 * readable on a phone.
 */
export function toPlot({ unit, points }: { unit: string; points: readonly Point[] }): Html | undefined {
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined || last.done === 0) return undefined
  const took = last.at - first.at
  const x = (at: number) => round(((at - first.at) / took) * width)
  const y = (done: number) => round(height - (done / last.done) * height)
  const line = points.map(({ at, done }) => `${x(at)},${y(done)}`).join(' ')
  const all = `${formatCount(last.done)} ${unit} in ${formatTook(took)}`
  return html`<section>
    <h2>Progress</h2>
    <figure>
      <figcaption>${all}</figcaption>
      <svg
        viewBox="0 0 ${width} ${height}"
        preserveAspectRatio="none"
        role="img"
        aria-label="${all}, from ${formatTime(first.at)} to ${formatTime(last.at)}"
      >
        <polygon points="0,${height} ${line} ${width},${height}" />
        <polyline points="${line}" />
      </svg>
      <div class="axis"><span>${formatTime(first.at)}</span><span>${formatTime(last.at)}</span></div>
    </figure>
  </section>`
}

const round = (value: number) => Math.round(value * 10) / 10
