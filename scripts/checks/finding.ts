import { toFailure } from '../terminal/failures.ts'

/** What one look found: a sentence, and whether all is well. */
export interface Finding {
  what: string
  ok: boolean
  says: string
}

export const fine = (what: string, says: string): Finding => ({ what, ok: true, says })
export const wrong = (what: string, says: string): Finding => ({ what, ok: false, says })

/** A look that fails says why in its error's own sentence. */
export async function look(what: string, see: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await see()
  } catch (error) {
    const { message, hint } = toFailure(error)
    return [
      wrong(
        what,
        [message, hint]
          .filter((part) => part !== null)
          .map(toSentence)
          .join(' '),
      ),
    ]
  }
}

/** Errors that are told after a colon begin small and end open. */
function toSentence(text: string): string {
  const ended = /[.!?]$/.test(text) ? text : `${text}.`
  return ended.replace(/^[a-z]/, (letter) => letter.toUpperCase())
}
