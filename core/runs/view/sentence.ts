/** Part of a sentence: plain text, emphasized text, or text to type exactly as it is. */
export type Piece = string | { strong: string } | { code: string }

/** Text for people that each renderer formats in its own way. Plain data, so that steps can return it. */
export type Sentence = string | readonly Piece[]

export const strong = (text: string): Piece => ({ strong: text })
export const code = (text: string): Piece => ({ code: text })

/** sentence`The run is ${strong(phase)}.` */
export const sentence = (
  texts: TemplateStringsArray,
  ...pieces: readonly (Piece | number)[]
): readonly Piece[] =>
  texts.flatMap((text, at) => {
    const piece = pieces[at]
    return piece === undefined ? [text] : [text, typeof piece === 'number' ? String(piece) : piece]
  })

export const piecesOf = (from: Sentence): readonly Piece[] => (typeof from === 'string' ? [from] : from)
