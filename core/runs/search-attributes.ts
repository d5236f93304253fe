/** The search attributes by which runs are found in the Temporal UI. */
export type SearchAttributeName = 'Verdict' | 'NeedsPerson' | 'Resource'
