import { z } from 'zod'

/** Whom the caller of a run believes to act on; refused where the worker serves another. */
export const identityInput = z
  .strictObject({
    workspace: z.string(),
    baseUrl: z.string(),
    mode: z.enum(['live', 'test']),
    store: z.string(),
  })
  .optional()
