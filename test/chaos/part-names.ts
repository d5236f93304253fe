export const partNames = ['histories', 'temporal', 'fleet', 'rate', 'bucket', 'ranges'] as const
export type PartName = (typeof partNames)[number]
