/** Texts that break readers, writers and spreadsheets, all from real data. */
export const awkwardNames: readonly string[] = [
  'Comercial Ñandú, Hijos y Cía. "La 9"',
  '=HYPERLINK("http://127.0.0.1/","Haga clic")',
  '+56 Telecom SpA',
  '-Descuentos-',
  '@Agencia Digital',
  'Líneas\nAéreas\r\ndel Sur',
  '\tTabulada S.A.',
  'Panadería 🥖 «El Trigal» 👩‍🍳',
  "O'Higgins & Asociados; Ltda.",
  '  espacios alrededor  ',
  'Ünïcödé ﷽ 株式会社 مرحبا',
  '"entre comillas"',
  '\\N',
  'NULL',
  '0012',
  '1e5',
]

export const plainNames: readonly string[] = [
  'Transportes del Valle',
  'Viña Los Aromos',
  'Clínica Santa Elena',
  'Ferretería El Martillo',
  'Constructora Maipo',
  'Colegio San Andrés',
  'Importadora Austral',
  'Estudio Jurídico Rojas',
  'Minera Quebrada Alta',
  'Librería Cervantes',
  'Pesquera Los Lagos',
  'Hotel Atacama',
]

export const notes: readonly (string | null)[] = [
  null,
  '',
  'Cliente preferente',
  'Pagar antes del día 5, "sin falta"',
  '=1+1',
  'línea uno\nlínea dos',
  '🙂 gracias; saludos',
]

export const streets: readonly string[] = [
  'Av. Providencia 1234, Of. 501',
  'Calle 72 # 10-34, Piso 3\nBogotá D.C.',
  'Paseo de la Reforma 222; Col. Juárez',
  'Los "Almendros" 55',
  '',
]

export const phones: readonly (string | null)[] = [
  '+56 9 8765 4321',
  '+573001234567',
  '(55) 5123-4567',
  '-',
  '',
  null,
]
