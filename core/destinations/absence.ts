import type { Publication } from './destination.ts'
import type { Deletes, Manifest } from './manifest/manifest.ts'
import { rowsOf } from './parts/read-parts.ts'

/** The facts of a read that decide whether a record missing from it is gone. */
export type WholeRead = Pick<Manifest, 'verdict' | 'mode' | 'filters' | 'capped' | 'clock'> & {
  rejected: { rows: number }
  hiddenFound?: unknown
  statusCheck?: unknown
}

/** Whether it was a proven read of the whole list. */
export const isOfAll = ({ verdict, mode, filters, capped }: WholeRead): boolean =>
  verdict === 'proven' && mode === 'full' && Object.keys(filters).length === 0 && !capped

/** Why a record missing from a proven read of the whole list may still exist, as half a sentence. */
export function caveatOf({ rejected, hiddenFound, statusCheck, clock }: WholeRead): string | undefined {
  if (rejected.rows > 0)
    return `${rejected.rows} of what came had no id that can be kept (see _rejected), and any of them may be one of these`
  if (hiddenFound === true)
    return 'the list hides records by their status, and one whose status changed during the read may have been missed'
  if (statusCheck === 'unread')
    return 'a record that changed during the read is shown under its status and was not read, so the list may hide records by their status'
  if (statusCheck === 'unordered')
    return 'the list does not honour ordering=-updated, so a record that went to a hidden status during the read looks as if it were gone'
  if (statusCheck === 'unseen')
    return 'more records changed during the read than one page of a status shows, so one that went to a hidden status may have been missed'
  // A local clock set back after the read would make a record created since look as if it had been there
  // before.
  if (clock === 'local')
    return "the service told no time, so which records the read should have seen rests on this machine's clock"
  return undefined
}

export const readOf = ({ facts, mode, filters, capped, rejected = [] }: Publication): WholeRead => ({
  ...facts,
  mode,
  filters,
  capped,
  rejected: { rows: rowsOf(rejected) },
})

/** A tenth of the live records, or this many if that is more, may be marked without an explicit limit. */
const alwaysAllowed = 10

/** The live records that a read should have seen and did not. */
export interface Absent {
  rows: number
  /** The first ids, in order. */
  first: readonly string[]
  /** How many live records there are, these included. */
  live: number
}

/** What a publication does about the records that its read lacks. */
export interface JudgedDeletes {
  /** Whether all absent records are to be marked; otherwise none is. */
  marks: boolean
  deletes: Deletes | undefined
  /** What is held back, in one sentence. */
  warnings: string[]
  /** Whether the read proves deletes, and all of them are marked. */
  isProof: boolean
}

/** Whether a read can prove that records are gone: proven, of the whole list, complete up to a time that records can be compared with. */
export const canProveDeletes = (publication: Publication): boolean =>
  isOfAll(readOf(publication)) &&
  publication.facts.completeThrough !== null &&
  publication.tables[0]!.columns.some(({ name, kind }) => name === 'created' && kind === 'timestamp')

/** Decides about the absent records of a read that can prove deletes. */
export function judgeAbsent(publication: Publication, { rows, first, live }: Absent): JudgedDeletes {
  const { resource, run, maxDeletes } = publication
  const doubt = caveatOf(readOf(publication))
  const named = `${rows} ${resource}`
  const ids = `(${first.join(', ')}${rows > first.length ? ', ...' : ''})`
  if (doubt !== undefined)
    return {
      marks: false,
      isProof: false,
      deletes: { marked: 0, heldBack: rows, first: [...first], ...(rows > 0 && { doubt }) },
      warnings:
        rows === 0 ? [] : [`${named} were not seen ${ids}, and none was marked as deleted: ${doubt}.`],
    }
  const allowed =
    maxDeletes === 'all' ? Infinity : (maxDeletes ?? Math.max(alwaysAllowed, Math.floor(live / 10)))
  if (rows <= allowed)
    return {
      marks: rows > 0,
      isProof: true,
      deletes: { marked: rows, heldBack: 0, first: [...first] },
      warnings: [],
    }
  return {
    marks: false,
    isProof: false,
    deletes: { marked: 0, heldBack: rows, first: [...first] },
    warnings: [
      `${named} are no longer in the service ${ids}, which is more than may be marked as deleted at once; none was` +
        ` marked. If it is right, publish ${run} again with --max-deletes all.`,
    ],
  }
}
