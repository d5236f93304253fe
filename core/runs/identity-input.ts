import { z } from 'zod'

/** The workspace the caller expects. Rejected if the worker serves a different one. */
export const identityInput = z
  .strictObject({
    workspace: z.string(),
    baseUrl: z.string(),
    mode: z.enum(['live', 'test']),
    store: z.string(),
  })
  .optional()
