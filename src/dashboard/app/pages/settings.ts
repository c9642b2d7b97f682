export { AccountPage } from './account.tsx'
export { OrganizationPage } from './organization.tsx'
export { ServerPage } from './server.tsx'
