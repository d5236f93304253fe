/** The search attributes by which runs are found in the Temporal UI. */
export type MarkName = 'Verdict' | 'NeedsPerson' | 'Resource'
