import type { Terminal } from './terminal.ts'

/** In ms. After this, people wonder what a command does. */
const slowMs = 1_000

/** Says what a command waits for if it takes longer than a second. */
export async function tellIfSlow<T>({ terminal, line, work }: Telling<T>): Promise<T> {
  const timer = setTimeout(() => terminal.note(line), slowMs)
  try {
    return await work
  } finally {
    clearTimeout(timer)
  }
}

interface Telling<T> {
  terminal: Pick<Terminal, 'note'>
  line: string
  work: Promise<T>
}
